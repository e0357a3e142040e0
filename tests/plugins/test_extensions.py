"""Extensions: what they contribute, and that a broken one is named and left out."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import pytest

NAMED = ("acme-ops", "4.5.6")

# An op of its own with a kernel for the good backend, rules and a decomposition.
WORKING = """
import numpy as np
from tensorplug.plugin import (
    BatchingTable,
    DecompositionTable,
    GradientTable,
    KernelSpec,
    KernelTable,
    TangentTable,
    chained,
    dispatch,
    hookimpl,
    inference,
    specs,
)

HALVE = KernelSpec("Halve", ("x",), inference.same)
kernels = KernelTable()
gradients = GradientTable()
tangents = TangentTable()
batching = BatchingTable()
decompositions = DecompositionTable()

tangents.linear(HALVE, "x")
batching.elementwise(HALVE)


@kernels.register(HALVE)
def halve_kernel(x):
    return x / np.float32(2)


@gradients.wrt(HALVE, "x")
def halve_wrt_x(dy):
    return halve(dy)


@decompositions.of(HALVE)
def halve_decomposed(x):
    return x / 2


@chained
def halve(x):
    return dispatch(HALVE, x)


@hookimpl
def tensorplug_kernels(backend):
    return [kernels] if backend.name == "good" else ()


@hookimpl
def tensorplug_gradients():
    return [gradients]


@hookimpl
def tensorplug_tangents():
    return [tangents]


@hookimpl
def tensorplug_batching():
    return [batching]


@hookimpl
def tensorplug_decompositions():
    return [decompositions]


@hookimpl
def tensorplug_chained_ops():
    return [halve]
"""


@dataclass(frozen=True)
class Case:
    source: str
    says: tuple[str, ...]
    when: str = "built"  # or "opened": when the warning is due
    changes: dict[str, Any] = field(default_factory=dict)
    state: str = "failed"


CASES = {
    "import error": Case(
        "import a_module_that_is_not_there",
        ("raised ModuleNotFoundError", "TENSORPLUG_DISABLE_PLUGINS=acme_ops"),
    ),
    "SystemExit at import": Case("raise SystemExit('no')", ("raised SystemExit: no",)),
    "op at import": Case(
        "import tensorplug; tensorplug.asarray([1.0])", ("runs an op while it is imported",)
    ),
    "misspelt hook": Case(
        "@hookimpl\ndef tensorplug_gradient():\n    return ()",
        ("acme_ops.tensorplug_gradient", "did you mean tensorplug_gradients?"),
    ),
    "creates a backend": Case(
        "@hookimpl\ndef tensorplug_create_backend(device):\n    return None",
        ("creates a backend", "it belongs in tensorplug.backends"),
    ),
    "gradients hook raises": Case(
        "@hookimpl\ndef tensorplug_gradients():\n    return [gradient]",
        ("raised NameError: name 'gradient' is not defined in tensorplug_gradients",),
    ),
    "kernels instead of gradients": Case(
        "@hookimpl\ndef tensorplug_gradients():\n    return [kernels]",
        ("tensorplug_gradients returned", "a KernelTable, not GradientTables"),
    ),
    "gradient of the core registered again": Case(
        "gradients.wrt(specs.NEG, 'x')(lambda dy: -dy)",
        ("the gradient of 'Neg' with respect to 'x' is already registered by tensorplug 0.1.0",),
    ),
    "gradient asks for something unknown": Case(
        "gradients.wrt(specs.ADD, 'a')(lambda dz: dz)",
        (
            "gradient of 'Add' with respect to 'a'",
            "has unknown parameters dz",
            "possible are dy, a, b",
        ),
    ),
    "chained name is taken": Case(
        "@chained\ndef reshape(x):\n    return x\n"
        "@hookimpl\ndef tensorplug_chained_ops():\n    return [halve, reshape]",
        ("'reshape' already", "acme_ops.reshape"),
    ),
    "op without the mark": Case(
        "def plain(x):\n    return x\n"
        "@hookimpl\ndef tensorplug_chained_ops():\n    return [plain]",
        ("which is not an op marked @chained",),
    ),
    "core too old": Case(
        "raise AssertionError('imported')",
        ("requires 'tensorplug>=99'", 'pip install "tensorplug>=99"'),
        changes={"requires": ("tensorplug>=99",)},
        state="incompatible",
    ),
    "kernels hook raises": Case(
        "@hookimpl\ndef tensorplug_kernels(backend):\n    return backend.queue",
        ("raised AttributeError", "in tensorplug_kernels"),
        when="opened",
    ),
    "kernel of the backend registered again": Case(
        "kernels.register(specs.ADD)(lambda a, b: a + b)",
        (
            "kernel 'Add' for backend 'good' is already registered by tensorplug-good 1.2.3",
            "acme-ops 4.5.6 must set override=True",
        ),
        when="opened",
    ),
}

SCRIPT = """
from tensorplug.dispatch.context import ROOT
from tensorplug.engine.current import current_engine
from tensorplug.plugins import discovery
import tensorplug as tp

seen = {"before": listed(discovery.extensions()), "early": "acme_ops" in sys.modules}
seen["built"] = attempt(lambda: current_engine().registry.state.version)
seen["opened"] = attempt(lambda: tp.set_backend("good"))
seen["good"] = added(tp)
state = ROOT.engine.registry.state
seen["known"] = "Halve" in state.specs
seen["owned"] = sorted({
    str(owned.owner)
    for stacks in (state.kernels, state.gradients, state.decompositions)
    for stack in stacks.values() for owned in stack
})
seen["method"] = hasattr(tp.Tensor, "halve")
seen["after"] = listed(discovery.extensions())
report(seen)
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_broken_extension_is_named_and_left_out(case: Case, site, good, make_extension):
    source = WORKING + textwrap.dedent(case.source)
    site.install(good, make_extension("acme_ops", source, **case.changes))
    seen = site.run(SCRIPT)

    assert not seen["early"]
    assert (seen["built"][0], seen["opened"][0]) == ("nothing", "nothing")
    other = {"built": "opened", "opened": "built"}[case.when]
    assert seen[other][3] == []
    [[category, message]] = seen[case.when][3]
    assert category == "PluginWarning"
    for fragment in (*NAMED, *case.says):
        assert fragment in message
    assert seen["good"] == ["float32", [2], [3.0, 7.0], "good"]
    assert not any(owner.startswith("acme") for owner in seen["owned"]) or case.when == "opened"
    assert seen["known"] == (case.when == "opened")
    assert seen["method"] == (case.when == "opened")
    distribution, version, state, detail = seen["after"]["acme_ops"]
    assert (distribution, version, state) == (*NAMED, case.state)
    assert detail in message


def test_extension_brings_op_kernel_rules_decomposition_and_method(site, good, make_extension):
    site.install(good, make_extension("acme_ops", WORKING))
    seen = site.run("""
        import tensorplug as tp
        from tensorplug.dispatch.context import ROOT
        from tensorplug.plugins import discovery

        tp.set_backend("good")
        x = tp.asarray([3.0, 8.0])
        gradient = tp.grad(lambda x: x.halve())(x, dy=tp.asarray([2.0, 6.0]))
        state = ROOT.engine.registry.state
        report({
            "result": x.halve().numpy().tolist(),
            "dtype": str(x.halve().dtype),
            "gradient": gradient.numpy().tolist(),
            "tangent": tp.jvp(tp.Tensor.halve, (x,), (x,))[1].numpy().tolist(),
            "vmap": tp.vmap(tp.Tensor.halve)(x).numpy().tolist(),
            "owners": [
                str(state.kernel("Halve", "good").owner),
                str(state.gradient("Halve", "x").owner),
                str(state.tangent("Halve", "x").owner),
                str(state.batching("Halve").owner),
                str(state.decomposition("Halve").owner),
            ],
            "backends": sorted(b for k, b in state.kernels if k == "Halve"),
            "listed": listed(discovery.extensions())["acme_ops"],
        })
    """)
    assert seen == {
        "dtype": "float32",
        "result": [1.5, 4.0],
        "gradient": [1.0, 3.0],
        "tangent": [1.5, 4.0],
        "vmap": [1.5, 4.0],
        "owners": ["acme-ops 4.5.6"] * 5,
        "backends": ["good"],
        "listed": ["acme-ops", "4.5.6", "loaded", ""],
    }


def test_two_broken_extensions_and_a_good_one(site, good, make_extension):
    site.install(
        good,
        make_extension("acme_ops", WORKING),
        make_extension("aaa", "raise ValueError('first')"),
        make_extension("zzz", "raise ValueError('last')"),
    )
    seen = site.run(SCRIPT)
    assert [message.split("'")[1] for _, message in seen["built"][3]] == ["aaa", "zzz"]
    assert seen["known"]
    # The environment may hold more extensions, installed for other tests.
    states = {name: seen["after"][name][2] for name in ("aaa", "acme_ops", "zzz")}
    assert states == {"aaa": "failed", "acme_ops": "loaded", "zzz": "failed"}


def test_disabled_extension_is_not_imported(site, good, make_extension):
    site.install(good, make_extension("acme_ops", "raise ValueError"))
    seen = site.run(SCRIPT, TENSORPLUG_DISABLE_PLUGINS="acme_ops")
    assert seen["built"][3] == []
    assert seen["after"]["acme_ops"][2] == "disabled"


def test_two_distributions_that_claim_one_extension(site, good, make_extension):
    site.install(
        good,
        make_extension("acme_ops", WORKING),
        make_extension(
            "zeta",
            "raise AssertionError('imported')",
            entries={"tensorplug.extensions": {"acme_ops": "zeta"}},
        ),
    )
    seen = site.run(SCRIPT)
    [[category, message]] = seen["built"][3]
    assert category == "PluginWarning"
    assert "extension 'acme_ops' comes from acme-ops 4.5.6 and zeta 4.5.6" in message
    assert "TENSORPLUG_DISABLE_PLUGINS=zeta:acme_ops keeps that of acme-ops" in message
    assert not seen["known"]
    assert seen["good"] == ["float32", [2], [3.0, 7.0], "good"]

    chosen = site.run(SCRIPT, TENSORPLUG_PLUGINS="acme-ops:acme_ops,good")
    assert chosen["built"][3] == []
    assert chosen["known"]
