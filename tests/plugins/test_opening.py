"""Opening backends through their plugins: devices, second chances, fallback, diagnostics."""

from __future__ import annotations

import pytest

WORKING = """
from tensorplug_good import Numpy, kernels
from tensorplug.plugin import (
    ArgumentError,
    BackendUnavailableError,
    GradientTable,
    KernelSpec,
    KernelTable,
    chained,
    dispatch,
    hookimpl,
    inference,
    specs,
)

@hookimpl
def tensorplug_create_backend(device):
    return Numpy("acme")

@hookimpl
def tensorplug_kernels():
    return [kernels]
"""
RESULT = ["float32", [2], [3.0, 7.0]]


@pytest.fixture
def acme(site, good, make_backend):
    """Install the good backend, and what is given on top of WORKING as backend acme."""

    def install(source="", **changes):
        site.install(good, make_backend("acme", WORKING + source, **changes))
        return site

    return install


def test_devices_of_one_backend(acme):
    site = acme("""
opened = []

@hookimpl
def tensorplug_create_backend(device):
    opened.append(device)
    if device == "9":
        raise BackendUnavailableError("there are 2 devices")
    if device == "x":
        raise ArgumentError("'x' is not a number")
    return Numpy("acme")
""")
    seen = site.run("""
        import tensorplug as tp
        from tensorplug.dispatch.context import ROOT
        results = []
        for name in ("acme", "acme:1", "acme:0", "acme:1"):
            tp.set_backend(name)
            results.append(added(tp))
        refused = [attempt(lambda: tp.set_backend(name))[:2] for name in ("acme:9", "acme:x")]
        import tensorplug_acme
        stack = ROOT.engine.registry.state.kernels["Add", "acme"]
        report({
            "results": results,
            "opened": tensorplug_acme.opened,
            "refused": refused,
            "registered": len(stack),
            "active": tp.get_backend(),
            "listed": listed(tp.backends())["acme"],
        })
    """)
    assert seen == {
        "results": [[*RESULT, name] for name in ("acme", "acme:1", "acme", "acme:1")],
        "opened": [None, "1", "9", "x"],
        "refused": [
            [
                "BackendUnavailableError",
                (
                    "backend 'acme' of tensorplug-acme 1.2.3 is not available here: "
                    "there are 2 devices"
                ),
            ],
            ["ArgumentError", "backend 'acme' of tensorplug-acme 1.2.3: 'x' is not a number"],
        ],
        "registered": 1,
        "active": "acme:1",
        "listed": ["tensorplug-acme", "1.2.3", "loaded", ""],
    }


def test_backend_opens_again_after_it_was_closed(acme):
    seen = acme().run("""
        import tensorplug as tp
        from tensorplug.dispatch.context import ROOT
        tp.set_backend("acme")
        x = tp.asarray([1.0])
        ROOT.engine.devices.close("acme")
        error = attempt(lambda: x.numpy())[0]
        tp.set_backend("acme")
        report([error, added(tp)])
    """)
    assert seen == ["BackendClosedError", [*RESULT, "acme"]]


def test_hardware_that_appears_later(acme):
    site = acme("""
from pathlib import Path

@hookimpl
def tensorplug_create_backend(device):
    return Numpy("acme") if Path("plugged-in").exists() else None
""")
    seen = site.run(f"""
        import os, pathlib
        os.chdir({str(site.path)!r})
        import tensorplug as tp
        first = attempt(lambda: tp.set_backend("acme"))[0]
        state = listed(tp.backends())["acme"][2]
        pathlib.Path("plugged-in").touch()
        tp.set_backend("acme")
        report([first, state, added(tp), listed(tp.backends())["acme"][2:]])
    """)
    assert seen == ["BackendUnavailableError", "failed", [*RESULT, "acme"], ["loaded", ""]]


def test_keyboard_interrupt_passes_and_is_not_kept(acme):
    site = acme("""
import os
if os.environ.pop("TESTED_INTERRUPT", None):
    raise KeyboardInterrupt
""")
    seen = site.run(
        """
        import tensorplug as tp
        first = attempt(lambda: tp.set_backend("acme"))[0]
        tp.set_backend("acme")
        report([first, added(tp)])
        """,
        TESTED_INTERRUPT="1",
    )
    assert seen == ["KeyboardInterrupt", [*RESULT, "acme"]]


INTERRUPTED = """
from tensorplug.plugin import hookimpl
times = []

@hookimpl
def tensorplug_kernels(backend):
    times.append(backend)
    if len(times) == 1:
        {interruption}
    return ()
"""


@pytest.mark.parametrize(
    ("interruption", "raised"),
    [("raise OSError", "PluginWarning"), ("raise KeyboardInterrupt", "KeyboardInterrupt")],
)
def test_backend_opens_after_an_interrupt(interruption, raised, site, good, make_extension):
    """An interrupt, or a warning made an error, comes after the backend's own rules are taken."""
    site.install(good, make_extension("acme_ops", INTERRUPTED.format(interruption=interruption)))
    seen = site.run("""
        import tensorplug as tp
        first = None
        try:
            tp.set_backend("good")  # warnings are errors here
        except BaseException as error:
            first = type(error).__name__
        import acme_ops
        tp.set_backend("good")
        report({"first": first, "closed": acme_ops.times[0].closed, "second": added(tp)})
    """)
    assert seen == {
        "first": raised,
        "closed": True,
        "second": ["float32", [2], [3.0, 7.0], "good"],
    }


@pytest.mark.parametrize(
    ("closing", "notes"),
    [
        ("closed.append(self.name)", []),
        ("closed.append(self.name); raise OSError('busy')", ["closing it raised OSError: busy"]),
    ],
)
def test_backend_whose_kernels_do_not_fit_is_closed(closing, notes, acme):
    site = acme(f"""
closed = []

class Closing(Numpy):
    def close(self):
        {closing}

@hookimpl
def tensorplug_create_backend(device):
    return Closing("acme")

@hookimpl
def tensorplug_kernels():
    return [kernels, kernels]
""")
    seen = site.run("""
        import tensorplug as tp
        try:
            tp.set_backend("acme")
        except tp.errors.RegistrationError as error:
            notes = getattr(error, "__notes__", [])
        from tensorplug.dispatch.context import ROOT
        import tensorplug_acme
        kept = [key for key in ROOT.engine.registry.state.kernels if "acme" in key]
        report([notes, tensorplug_acme.closed, kept])
    """)
    assert seen == [notes, ["acme"], []]


def test_preferred_backends_are_tried_in_order(acme):
    site = acme("raise ImportError('no driver')")
    script = """
        import tensorplug as tp
        seen = []
        outcome = attempt(lambda: seen.append(added(tp)))
        report([outcome, seen])
    """
    [_, _, _, warned], seen = site.run(script, TENSORPLUG_BACKEND="acme,good")
    assert seen == [[*RESULT, "good"]]
    [[category, message]] = warned
    assert category == "BackendWarning"
    assert "'good', because" in message
    assert "no driver" in message


def test_fallback_to_a_backend_that_is_not_open_yet(acme):
    site = acme("""
kernels = KernelTable()
kernels.register(specs.NEG)(lambda x: -x)
""")
    script = """
        import tensorplug as tp
        tp.set_backend("acme")
        seen = []
        outcome = attempt(lambda: seen.append(added(tp)))
        report([outcome, seen])
    """
    environment = {"TENSORPLUG_PLUGINS": "acme,good"}
    [_, _, _, warned], seen = site.run(script, **environment)
    assert seen == [[*RESULT, "acme"]]
    [[category, message]] = warned
    assert category == "FallbackWarning"
    assert "kernel 'Add' runs on backend 'good'" in message

    [error, message, _, _], seen = site.run(script, TENSORPLUG_FALLBACK="error", **environment)
    assert seen == []
    assert error == "KernelNotFoundError"


def test_rules_of_a_backend_are_registered_when_it_opens(acme):
    site = acme("""

THIRD = KernelSpec("Third", ("x",), inference.same)
own, gradients = KernelTable(), GradientTable()
own.register(THIRD)(lambda x: x / x.dtype.type(3))
gradients.wrt(THIRD, "x")(lambda dy: third(dy))

@chained
def third(x):
    return dispatch(THIRD, x)

@hookimpl
def tensorplug_kernels(backend):
    return [kernels, own]

@hookimpl
def tensorplug_gradients():
    return [gradients]

@hookimpl
def tensorplug_chained_ops():
    return [third]
""")
    seen = site.run("""
        import tensorplug as tp
        tp.set_backend("good")
        before = hasattr(tp.Tensor, "third")
        tp.set_backend("acme")
        x = tp.asarray([6.0])
        y = tp.grad(lambda x: x.third())(x, dy=tp.asarray([9.0]))
        report([before, x.third().numpy().tolist(), y.numpy().tolist()])
    """)
    assert seen == [False, [2.0], [3.0]]


def test_diagnostics(acme):
    site = acme("""
@hookimpl
def tensorplug_create_backend(device):
    raise BackendUnavailableError("no device")

@hookimpl
def tensorplug_diagnostics():
    return {"driver": 7}
""")
    seen = site.run("""
        import tensorplug as tp
        from tensorplug.engine.current import current_engine
        source = current_engine().devices.source
        report([
            source.diagnostics("acme"),
            source.diagnostics("good"),
        ])
    """)
    assert seen == [{"driver": "7"}, {}]


def test_two_engines_load_a_plugin_each(acme):
    seen = acme().run("""
        from tensorplug.plugins.assembly import build_engine
        engines = build_engine(), build_engine()
        report([
            engine.open("acme").backend is engines[0].open("acme").backend for engine in engines
        ])
    """)
    assert seen == [True, False]
