"""Each way in which a backend distribution can be broken, beside one that works.

The broken one is installed next to the good one. Asking for it must give one error of a clear
class that names distribution, version and cause, the second time too; the good one must run.
"""

from __future__ import annotations

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


def hook(head: str, *body: str) -> str:
    """Return the source of a hook whose body is these lines."""
    return f"\n@hookimpl\ndef tensorplug_{head}:\n" + "".join(f"    {line}\n" for line in body)


HALF = """
class Half:
    name = "broken"
    device = "half"
    dtypes = frozenset()
    def from_host(self, array): ...
    def to_host(self, buffer): ...
    def describe(self, buffer): ...
    def allocation(self, buffer): ...
"""
NAMED_DTYPES = """
class Named(Numpy):
    def __init__(self):
        super().__init__("broken")
        self.dtypes = {"float32"}
"""
RAISES = """
class Raises(Numpy):
    dtypes = property(lambda self: 1 // 0, lambda self, value: None)
"""
ADD_WITH_ALPHA = """
table = KernelTable()

@table.register(specs.ADD)
def add(a, b, *, alpha):
    return a + alpha * b
"""
ADD_AND_NEG = """
other = KernelTable()
other.register(specs.NEG)(lambda x: -x)
other.register(specs.ADD)(lambda a, b: a + b)
"""
OWN_NEG = """
from tensorplug.plugin import KernelSpec, inference
table = KernelTable()
table.register(KernelSpec("Neg", ("x",), inference.same))(lambda x: -x)
"""
IN_KERNELS = "raised {} in tensorplug_kernels"
RETURNED = "tensorplug_kernels returned {}"

# The error, and what breaks the working backend with what the error says beside its name.
BROKEN = {
    "PluginLoadError": [
        (
            "import a_module_that_is_not_there",
            "raised ModuleNotFoundError: No module named 'a_module_that_is_not_there' while it ",
            "entry point broken = tensorplug_broken",
            SKIP,
        ),
        ("def broken(:", "raised SyntaxError: ", SKIP),
        (
            "import sys; sys.exit('no license')",
            "raised SystemExit: no license while it was imported",
            SKIP,
        ),
        (
            "import tensorplug; tensorplug.set_backend('broken')",
            "while it is being opened",
            "must not run ops when it is imported",
            SKIP,
        ),
        (
            hook("create_backend(device)", "return {}['missing']"),
            "raised KeyError: 'missing' in tensorplug_create_backend",
            SKIP,
        ),
        (hook("kernels()", "raise SystemExit(3)"), IN_KERNELS.format("SystemExit: 3"), SKIP),
        (
            hook("kernels()", "yield kernels", "raise OSError('driver gone')"),
            IN_KERNELS.format("OSError: driver gone"),
            SKIP,
        ),
        (
            RAISES + hook("create_backend(device)", "return Raises('broken')"),
            "raised ZeroDivisionError",
            "while its backend was checked",
        ),
    ],
    "BackendUnavailableError": [
        (
            hook("create_backend(device)", "raise BackendUnavailableError('no libacme.so.3')"),
            "is not available here: no libacme.so.3",
        ),
        (
            hook("create_backend(device)", "return None"),
            "is not available here: it found no device and gave no reason",
        ),
    ],
    "RegistrationError": [
        (
            hook("kernals()", "return [kernels]"),
            "tensorplug_broken.tensorplug_kernals implements tensorplug_kernals",
            "which is not a hook",
            "did you mean tensorplug_kernels?",
            "tensorplug_gradients",
        ),
        (
            "def tensorplug_gradients(): return []",
            "tensorplug_broken.tensorplug_gradients looks like the hook",
            "@hookimpl",
        ),
        (
            "def tensorplug_gradient(): return []",
            "tensorplug_broken.tensorplug_gradient looks like the hook tensorplug_gradients",
        ),
        (
            hook("kernels(backend, engine)", "return [kernels]"),
            "tensorplug_broken.tensorplug_kernels has unknown parameters engine",
            "possible are backend",
        ),
        (  # pluggy would not pass it
            hook("create_backend(device=None)", "return Numpy('broken')"),
            "tensorplug_broken.tensorplug_create_backend takes device=None",
            "without defaults",
        ),
        ("del tensorplug_create_backend", "the hook tensorplug_create_backend is missing"),
        (
            ADD_WITH_ALPHA,
            "kernel 'Add': tensorplug_broken.add has the parameters (a, b, *, alpha)",
            "keyword-only parameters: (a, b, *, ",
        ),
        (
            hook("kernels()", "return kernels"),
            RETURNED.format("a KernelTable"),
            "an iterable of KernelTables",
        ),
        (
            hook("kernels()", "return [{'Add': max}]"),
            RETURNED.format("{'Add': <built-in function max>}, a dict"),
            "KernelTables",
        ),
        (hook("kernels()", "return 7"), RETURNED.format("7, which is not iterable")),
        (hook("kernels()", "[kernels]"), RETURNED.format("None; return () for nothing")),
        (
            ADD_AND_NEG + hook("kernels()", "return [kernels, other]"),
            "kernel 'Add' for backend 'broken' is already registered by tensorplug-broken 1.2.3",
            "override=True",
        ),
        (OWN_NEG + hook("kernels()", "return [table]"), "defines a spec 'Neg'"),
        (
            hook("create_backend(device)", "return Numpy('acme')"),
            "has the name 'acme', but its entry point is 'broken'",
        ),
        (
            HALF + hook("create_backend(device)", "return Half()"),
            "a Half, lacks synchronize, memory, close",
        ),
        (
            NAMED_DTYPES + hook("create_backend(device)", "return Named()"),
            "has dtypes {'float32'}",
            "frozenset",
        ),
    ],
}
# The same for packages whose metadata is wrong; such a package is not imported.
MISLABELLED = {
    "PluginLoadError": [
        (
            {"entries": {"tensorplug.backends": {"broken": "tensorplug_elsewhere"}}},
            "ModuleNotFoundError",
            "entry point broken = tensorplug_elsewhere",
            SKIP,
        ),
    ],
    "PluginVersionError": [
        (
            {"requires": ("tensorplug>=99.1,<100", "numpy")},
            "requires 'tensorplug>=99.1,<100', but tensorplug 0.1.0 is installed",
            'pip install "tensorplug>=99.1,<100"',
        ),
        (
            {"requires": ("Tensorplug (<0.1)",)},
            "requires 'Tensorplug (<0.1)'",
            "pip install --upgrade tensorplug-broken",
        ),
        (
            {"requires": ("tensorplug about 1",)},
            "'tensorplug about 1': Expected ",
            "pip install --upgrade tensorplug-broken",
        ),
    ],
}
CASES = [
    *((error, WORKING + row[0], {}, row[1:]) for error, rows in BROKEN.items() for row in rows),
    *(
        (error, "raise AssertionError('imported, though it does not fit')", *row[:1], row[1:])
        for error, rows in MISLABELLED.items()
        for row in rows
    ),
]

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
@pytest.mark.parametrize(("error", "source", "metadata", "says"), CASES)
def test_broken_backend_beside_a_good_one(error, source, metadata, says, site, good, make_backend):
    site.install(good, make_backend("broken", source, **metadata))
    seen = site.run(SCRIPT)

    refused = error == "PluginVersionError"  # known from the metadata
    assert seen["early"] == []
    assert seen["before"][:3] == [*NAMED, "incompatible" if refused else "available"]
    raised, message, _, warned = seen["first"]
    assert raised == error, message
    for fragment in (*NAMED, "'broken'", *says):
        assert fragment in message
    assert warned == []
    assert seen["second"] == seen["first"]

    assert seen["set good"][0] == "nothing"
    assert seen["good"] == ["float32", [2], [3.0, 7.0], "good"]
    assert seen["after"]["broken"] == [*NAMED, "incompatible" if refused else "failed", message]
    assert seen["after"]["good"] == ["tensorplug-good", "1.2.3", "loaded", ""]


def test_base_of_the_cases_works(site, good, make_backend):
    site.install(good, make_backend("broken", WORKING))
    seen = site.run("import tensorplug as tp; tp.set_backend('broken'); report(added(tp))")
    assert seen == ["float32", [2], [3.0, 7.0], "broken"]
