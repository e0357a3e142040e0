"""Errors of plugins that are too long to be repeated in full."""

from __future__ import annotations

import pytest

from .conftest import GOOD_SOURCE


@pytest.mark.parametrize(
    ("source", "hook"),
    [
        ("raise OSError('first' + 'x' * 100_000 + 'last')", ""),
        (
            "raise BackendUnavailableError('first' + 'x' * 100_000 + 'last')",
            """from tensorplug.plugin import BackendUnavailableError
@hookimpl
def tensorplug_create_backend(device):
    """,
        ),
    ],
)
def test_a_long_error_is_shortened_and_stays_whole_as_the_cause(
    source, hook, site, good, make_backend
):
    site.install(
        good, make_backend("odd", GOOD_SOURCE.replace("good", "odd") + f"\n{hook}{source}\n")
    )
    message, cause, listed = site.run("""
        import tensorplug as tp
        try:
            tp.set_backend("odd")
        except tp.errors.TensorplugError as error:
            cause = error.__cause__
            while cause.__cause__ is not None:
                cause = cause.__cause__
            report([str(error), str(cause), listed(tp.backends())["odd"][-1]])
    """)
    assert cause == f"first{'x' * 100_000}last"
    for text in (message, listed):
        assert "firstxxx" in text
        assert "xxx ... (96,009 more characters) ... xxx" in text
        assert "xxxlast" in text
        assert len(text) < 5000
