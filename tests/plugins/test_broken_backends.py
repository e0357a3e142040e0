"""Each way in which a backend distribution can be broken, beside one that works.

The broken one is installed next to the good one. Asking for it must give one error of a clear
class that names distribution, version and cause, the second time too; the good one must run.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import pytest

NAMED = ("tensorplug-broken", "1.2.3")
SKIP = "TENSORPLUG_DISABLE_PLUGINS=broken"

# The same backend under another name; what a case appends overrides or breaks it.
WORKING = """
from tensorplug_good import Numpy, kernels
from tensorplug.plugin import BackendUnavailableError, KernelTable, hookimpl, specs

@hookimpl
def tensorplug_create_backend(device):
    return Numpy("broken")

@hookimpl
def tensorplug_kernels():
    return [kernels]
"""


@dataclass(frozen=True)
class Case:
    source: str
    error: str
    says: tuple[str, ...]
    on_top: bool = True  # of WORKING
    changes: dict[str, Any] = field(default_factory=dict)
    state: str = "failed"
    state_before: str = "available"


CASES = {
    "import error": Case(
        "import a_module_that_is_not_there",
        "PluginLoadError",
        (
            (
                "raised ModuleNotFoundError: No module named 'a_module_that_is_not_there' "
                "while it was imported"
            ),
            "entry point broken = tensorplug_broken",
            SKIP,
        ),
    ),
    "module missing": Case(
        "",
        "PluginLoadError",
        ("ModuleNotFoundError", "entry point broken = tensorplug_elsewhere", SKIP),
        changes={"entries": {"tensorplug.backends": {"broken": "tensorplug_elsewhere"}}},
    ),
    "syntax error": Case(
        "def broken(:", "PluginLoadError", ("raised SyntaxError: ", SKIP), on_top=False
    ),
    "SystemExit at import": Case(
        "import sys; sys.exit('no license')",
        "PluginLoadError",
        ("raised SystemExit: no license while it was imported", SKIP),
    ),
    "uses itself at import": Case(
        "import tensorplug; tensorplug.set_backend('broken')",
        "PluginLoadError",
        ("while it is being opened", "must not run ops when it is imported", SKIP),
    ),
    "misspelt hook": Case(
        """
        @hookimpl
        def tensorplug_kernals():
            return [kernels]
        """,
        "RegistrationError",
        (
            "tensorplug_broken.tensorplug_kernals implements tensorplug_kernals",
            "which is not a hook",
            "did you mean tensorplug_kernels?",
            "tensorplug_gradients",
        ),
    ),
    "hook without the mark": Case(
        """
        def tensorplug_gradients():
            return []
        """,
        "RegistrationError",
        ("tensorplug_broken.tensorplug_gradients looks like the hook", "@hookimpl"),
    ),
    "misspelt hook without the mark": Case(
        """
        def tensorplug_gradient():
            return []
        """,
        "RegistrationError",
        ("tensorplug_broken.tensorplug_gradient looks like the hook tensorplug_gradients",),
    ),
    "hook asks for too much": Case(
        """
        @hookimpl
        def tensorplug_kernels(backend, engine):
            return [kernels]
        """,
        "RegistrationError",
        (
            "tensorplug_broken.tensorplug_kernels has unknown parameters engine",
            "possible are backend",
        ),
    ),
    "hook with a default, which pluggy would not pass": Case(
        """
        @hookimpl
        def tensorplug_create_backend(device=None):
            return Numpy("broken")
        """,
        "RegistrationError",
        ("tensorplug_broken.tensorplug_create_backend takes device=None", "without defaults"),
    ),
    "no backend hook": Case(
        "from tensorplug.plugin import hookimpl",
        "RegistrationError",
        ("the hook tensorplug_create_backend is missing",),
        on_top=False,
    ),
    "wrong kernel signature": Case(
        """
        table = KernelTable()

        @table.register(specs.ADD)
        def add(a, b, *, alpha):
            return a + alpha * b
        """,
        "RegistrationError",
        (
            "kernel 'Add': tensorplug_broken.add has the parameters (a, b, *, alpha)",
            "keyword-only parameters: (a, b, *, ",
        ),
    ),
    "hardware missing, with a reason": Case(
        """
        @hookimpl
        def tensorplug_create_backend(device):
            raise BackendUnavailableError("driver libacme.so.3 was not found")
        """,
        "BackendUnavailableError",
        ("is not available here: driver libacme.so.3 was not found",),
    ),
    "hardware missing, None": Case(
        """
        @hookimpl
        def tensorplug_create_backend(device):
            return None
        """,
        "BackendUnavailableError",
        ("is not available here: it found no device and gave no reason",),
    ),
    "hook that raises": Case(
        """
        @hookimpl
        def tensorplug_create_backend(device):
            return {}["missing"]
        """,
        "PluginLoadError",
        ("raised KeyError: 'missing' in tensorplug_create_backend", SKIP),
    ),
    "hook that exits": Case(
        """
        @hookimpl
        def tensorplug_kernels():
            raise SystemExit(3)
        """,
        "PluginLoadError",
        ("raised SystemExit: 3 in tensorplug_kernels", SKIP),
    ),
    "generator hook that raises": Case(
        """
        @hookimpl
        def tensorplug_kernels():
            yield kernels
            raise OSError("driver gone")
        """,
        "PluginLoadError",
        ("raised OSError: driver gone in tensorplug_kernels", SKIP),
    ),
    "a table, not a list of them": Case(
        """
        @hookimpl
        def tensorplug_kernels():
            return kernels
        """,
        "RegistrationError",
        ("tensorplug_kernels returned a KernelTable", "an iterable of KernelTables"),
    ),
    "table of a wrong type": Case(
        """
        @hookimpl
        def tensorplug_kernels():
            return [{"Add": max}]
        """,
        "RegistrationError",
        ("tensorplug_kernels returned {'Add': <built-in function max>}, a dict", "KernelTables"),
    ),
    "not iterable": Case(
        """
        @hookimpl
        def tensorplug_kernels():
            return 7
        """,
        "RegistrationError",
        ("tensorplug_kernels returned 7, which is not iterable",),
    ),
    "forgotten return": Case(
        """
        @hookimpl
        def tensorplug_kernels():
            [kernels]
        """,
        "RegistrationError",
        ("tensorplug_kernels returned None; return () for nothing",),
    ),
    "kernel registered twice": Case(
        """
        other = KernelTable()
        other.register(specs.NEG)(lambda x: -x)
        other.register(specs.ADD)(lambda a, b: a + b)

        @hookimpl
        def tensorplug_kernels():
            return [kernels, other]
        """,
        "RegistrationError",
        (
            "kernel 'Add' for backend 'broken' is already registered by tensorplug-broken 1.2.3",
            "override=True",
        ),
    ),
    "a second spec of a known name": Case(
        """
        from tensorplug.plugin import KernelSpec, inference
        table = KernelTable()
        table.register(KernelSpec("Neg", ("x",), inference.same))(lambda x: -x)

        @hookimpl
        def tensorplug_kernels():
            return [table]
        """,
        "RegistrationError",
        ("defines a spec 'Neg'",),
    ),
    "backend under another name": Case(
        """
        @hookimpl
        def tensorplug_create_backend(device):
            return Numpy("acme")
        """,
        "RegistrationError",
        ("has the name 'acme', but its entry point is 'broken'",),
    ),
    "backend that lacks methods": Case(
        """
        class Half:
            name = "broken"
            device = "half"
            dtypes = frozenset()
            def from_host(self, array): ...
            def to_host(self, buffer): ...
            def describe(self, buffer): ...
            def allocation(self, buffer): ...

        @hookimpl
        def tensorplug_create_backend(device):
            return Half()
        """,
        "RegistrationError",
        ("a Half, lacks synchronize, memory, close",),
    ),
    "backend whose dtypes are names": Case(
        """
        class Named(Numpy):
            def __init__(self):
                super().__init__("broken")
                self.dtypes = {"float32"}

        @hookimpl
        def tensorplug_create_backend(device):
            return Named()
        """,
        "RegistrationError",
        ("has dtypes {'float32'}", "frozenset"),
    ),
    "backend that raises when looked at": Case(
        """
        class Raises(Numpy):
            dtypes = property(lambda self: 1 // 0, lambda self, value: None)

        @hookimpl
        def tensorplug_create_backend(device):
            return Raises("broken")
        """,
        "PluginLoadError",
        ("raised ZeroDivisionError", "while its backend was checked"),
    ),
    "core too old": Case(
        "raise AssertionError('imported, though it does not fit')",
        "PluginVersionError",
        (
            "requires 'tensorplug>=99.1,<100', but tensorplug 0.1.0 is installed",
            'pip install "tensorplug>=99.1,<100"',
        ),
        changes={"requires": ("tensorplug>=99.1,<100", "numpy")},
        state="incompatible",
        state_before="incompatible",
    ),
    "core too new": Case(
        "raise AssertionError('imported, though it does not fit')",
        "PluginVersionError",
        ("requires 'Tensorplug (<0.1)'", "pip install --upgrade tensorplug-broken"),
        changes={"requires": ("Tensorplug (<0.1)",)},
        state="incompatible",
        state_before="incompatible",
    ),
    "requirement that cannot be read": Case(
        "raise AssertionError('imported, though it may not fit')",
        "PluginVersionError",
        ("'tensorplug about 1': Expected ", "pip install --upgrade tensorplug-broken"),
        changes={"requires": ("tensorplug about 1",)},
        state="incompatible",
        state_before="incompatible",
    ),
}

SCRIPT = """
import tensorplug as tp

before = listed(tp.backends())
report({
    "before": before["broken"],
    "early": [name for name in sys.modules if name in ("tensorplug_broken", "tensorplug_good")],
    "first": attempt(lambda: tp.set_backend("broken")),
    "second": attempt(lambda: tp.set_backend("broken")),
    "set good": attempt(lambda: tp.set_backend("good")),
    "good": added(tp),
    "after": listed(tp.backends()),
})
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_broken_backend_beside_a_good_one(case: Case, site, good, make_backend):
    source = textwrap.dedent(case.source)
    source = WORKING + source if case.on_top else source
    site.install(good, make_backend("broken", source, **case.changes))
    seen = site.run(SCRIPT)

    assert seen["early"] == []
    assert seen["before"][:3] == [*NAMED, case.state_before]
    error, message, _, warned = seen["first"]
    assert error == case.error, message
    for fragment in (*NAMED, "'broken'", *case.says):
        assert fragment in message
    assert warned == []
    assert seen["second"] == seen["first"]

    assert seen["set good"][0] == "nothing"
    assert seen["good"] == ["float32", [2], [3.0, 7.0], "good"]
    assert seen["after"]["broken"] == [*NAMED, case.state, message]
    assert seen["after"]["good"] == ["tensorplug-good", "1.2.3", "loaded", ""]


def test_base_of_the_cases_works(site, good, make_backend):
    site.install(good, make_backend("broken", WORKING))
    seen = site.run("import tensorplug as tp; tp.set_backend('broken'); report(added(tp))")
    assert seen == ["float32", [2], [3.0, 7.0], "broken"]
