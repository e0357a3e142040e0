"""The environment variables: one strict parser."""

from __future__ import annotations

import pytest

from tensorplug.engine import settings
from tensorplug.engine.settings import Settings
from tensorplug.errors import SettingsError, SettingsWarning


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Settings()),
        ({"PATH": "/bin", "TENSORPLUGGED": "1"}, Settings()),
        ({"TENSORPLUG_BACKEND": "opencl:1, cpu,"}, Settings(backends=("opencl:1", "cpu"))),
        ({"TENSORPLUG_BACKEND": "auto"}, Settings()),
        ({"TENSORPLUG_BACKEND": ""}, Settings()),
        ({"TENSORPLUG_PLUGINS": "a:b,c"}, Settings(allowed=("a:b", "c"))),
        ({"TENSORPLUG_PLUGINS": ""}, Settings(allowed=())),
        ({"TENSORPLUG_DISABLE_PLUGINS": "a, b"}, Settings(denied=("a", "b"))),
        ({"TENSORPLUG_AUTOLOAD": "0"}, Settings(autoload=False)),
        ({"TENSORPLUG_AUTOLOAD": "Yes"}, Settings()),
        ({"TENSORPLUG_FALLBACK": "error"}, Settings(fallback="error")),
        ({"TENSORPLUG_FALLBACK": " allow "}, Settings(fallback="allow")),
        ({"TENSORPLUG_TRACEBACK": " full "}, Settings(traceback="full")),
        ({"TENSORPLUG_TRACEBACK": "short"}, Settings()),
        ({"TENSORPLUG_DEBUG": "on"}, Settings(debug=frozenset({"verify", "nan", "inf"}))),
        ({"TENSORPLUG_DEBUG": "1"}, Settings(debug=settings.DEFAULT_CHECKS)),
        ({"TENSORPLUG_DEBUG": "0"}, Settings()),
        ({"TENSORPLUG_DEBUG": ""}, Settings()),
        ({"TENSORPLUG_DEBUG": "leaks"}, Settings(debug=frozenset({"leaks"}))),
        ({"TENSORPLUG_DEBUG": " nan , inf,"}, Settings(debug=frozenset({"nan", "inf"}))),
        ({"TENSORPLUG_DEBUG": "verify,nan,inf,leaks"}, Settings(debug=frozenset(settings.CHECKS))),
        ({"TENSORPLUG_BUILD_NOTICE": "off"}, Settings(build_notice=False)),
        ({"TENSORPLUG_BUILD_NOTICE": "1"}, Settings()),
        ({"TENSORPLUG_MY_GPU_QUEUE": "2"}, Settings()),
    ],
)
def test_values(environment, expected):
    assert settings.read(environment, backends=["my-gpu"]) == expected


DEBUG = "must be 0, 1 or names of checks (verify, nan, inf, leaks)"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TENSORPLUG_AUTOLOAD", "maybe", "must be 0 or 1"),
        ("TENSORPLUG_DEBUG", "2", DEBUG),
        ("TENSORPLUG_DEBUG", "nan,1", DEBUG),
        ("TENSORPLUG_DEBUG", "NaN", DEBUG),
        ("TENSORPLUG_DEBUG", "nan inf", DEBUG),
        ("TENSORPLUG_DEBUG", ",", DEBUG),
        ("TENSORPLUG_BUILD_NOTICE", "12", "must be 0 or 1"),
        ("TENSORPLUG_FALLBACK", "never", "must be error, warn or allow"),
        ("TENSORPLUG_FALLBACK", "", "must be error, warn or allow"),
        ("TENSORPLUG_TRACEBACK", "1", "must be short or full"),
        ("TENSORPLUG_TRACEBACK", "", "must be short or full"),
    ],
)
def test_value_that_is_not_allowed(name, value, allowed):
    with pytest.raises(SettingsError) as caught:
        settings.read({name: value})
    assert str(caught.value) == f"{name}={value!r}: {allowed}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("TENSORPLUG_BACKENDS", "did you mean TENSORPLUG_BACKEND?"),
        ("TENSORPLUG_DISABLE_PLUGIN", "did you mean TENSORPLUG_DISABLE_PLUGINS?"),
        ("TENSORPLUG_OPENCL_DEVICE", "known are TENSORPLUG_BACKEND, TENSORPLUG_PLUGINS"),
        ("TENSORPLUG_CPUX", "known are"),
    ],
)
def test_unknown_variable_is_a_warning(name, hint):
    with pytest.warns(
        SettingsWarning, match=f"^{name} is not a variable .*({hint.replace('?', '[?]')})"
    ):
        settings.read({name: "1"}, backends=["cpu"])


def test_environment_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_BACKEND", "some,other")
    assert settings.read().backends == ("some", "other")
