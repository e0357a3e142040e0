"""The user's line of Python is found from wherever a kernel is called."""

from __future__ import annotations

import contextvars
import functools
import gc
import inspect
import linecache
import operator
import threading
import types
import weakref
from pathlib import Path

import pytest
from tests.core.support import engines
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.observers import callsite
from tensorplug.observers.callsite import CallSite
from tensorplug.testing import isolated_engine

pytestmark = pytest.mark.usefixtures("engine")


class Sites:
    """An observer that keeps where each kernel call came from, but for calls inside others."""

    def __init__(self):
        self.found = []
        self.inside = False

    def around(self, _plan, _inputs, run):
        if self.inside:
            return run()
        self.found.append(callsite.find())
        self.inside = True
        try:
            return run()
        finally:
            self.inside = False

    def uploaded(self, tensor):
        pass


@pytest.fixture
def sites(engine):
    watching = Sites()
    with use_context(current_context().replace(observers=(watching,))):
        yield watching.found


def called(x):
    return tp.exp(x)  # here


def added(x):
    return x + x  # here


def reflected(x):
    return 2.0 * x  # here


def method(x):
    return x.sum()  # here


def several_lines(x):
    return {
        "first": x,
        "second": x + x,  # here
    }


def through_a_builtin(x):
    return list(map(tp.exp, [x]))  # here


def through_the_standard_library(x):
    return functools.reduce(operator.add, [x, x])  # here


def in_a_comprehension(x):
    return [
        tp.exp(item)  # here
        for item in [x]
    ]


def by_a_lambda(x):
    apply = lambda item: tp.exp(item) + 1.0  # noqa: E731  # here
    return apply(x)


def with_different_dtypes(x):
    return x + tp.asarray([1, 2])  # here


def decomposed(x):
    return tp.square(x)  # here


def inside_grad(x):
    def loss(x):
        return tp.exp(x)  # here

    return tp.grad(total(loss))(x)


@pytest.mark.parametrize(
    "function",
    [
        called,
        added,
        reflected,
        method,
        several_lines,
        through_a_builtin,
        through_the_standard_library,
        in_a_comprehension,
        by_a_lambda,
        with_different_dtypes,
        decomposed,
        inside_grad,
    ],
)
def test_the_line_of_a_call(function, sites):
    x = tp.asarray([1.0, 2.0])
    function(x)
    source, start = inspect.getsourcelines(function)
    here = start + next(at for at, line in enumerate(source) if "# here" in line)
    assert (sites[0].file, sites[0].line) == (__file__, here)
    assert sites[0].source == source[here - start].strip()
    assert sites[0].function.startswith(function.__name__)


def test_a_backward_pass_comes_from_the_line_that_asks_for_it(sites):
    gradient = tp.grad(lambda x: x * x)
    x = tp.asarray(1.0)
    gradient(x)
    line = inspect.currentframe().f_lineno - 1
    assert {site.line for site in sites[1:]} == {line}


CELL = """
import tensorplug as tp
y = tp.exp(x)
"""


@pytest.mark.parametrize("names", [{}, {"__name__": "__main__"}, {"__name__": None}])
@pytest.mark.parametrize("file", ["<string>", "<ipython-input-3-abc>", "/tmp/ipykernel_1/2.py"])
def test_code_that_is_no_module(file, names, sites, monkeypatch):
    monkeypatch.setitem(linecache.cache, file, (len(CELL), None, CELL.splitlines(True), file))
    exec(compile(CELL, file, "exec"), {**names, "x": tp.asarray(1.0)})
    assert sites == [CallSite(file, 3, "<module>")]
    assert sites[0].source == "y = tp.exp(x)"


def test_a_line_whose_text_is_unknown():
    site = CallSite("<nowhere>", 7, "f")
    assert (site.source, site.describe(), str(site)) == ("", "<nowhere>:7 in f", "<nowhere>:7")


def test_paths_are_short_below_the_working_directory(monkeypatch, tmp_path):
    script = tmp_path / "folder" / "train.py"
    script.parent.mkdir()
    script.write_text("first\n    second\n")
    monkeypatch.chdir(tmp_path)
    site = CallSite(str(script), 2, "step")
    assert str(site) == str(Path("folder") / "train.py") + ":2"
    assert site.short == "train.py:2"
    assert site.describe() == f"{site} in step\n    second"
    monkeypatch.chdir(script.parent)
    assert str(CallSite(str(tmp_path / "other.py"), 1, "f")) == f"{tmp_path / 'other.py'}:1"


# Plugins --------------------------------------------------------------------------------


def module(name, text):
    """Return a module of that name; its lines cannot be mistaken for this file's."""
    made = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), made.__dict__)
    return made


OP = "import tensorplug as tp\ndef twice(x): return tp.exp(tp.exp(x))\n"


@pytest.mark.parametrize(
    ("name", "packages", "left_out"),
    [
        ("acme", ["acme"], True),
        ("acme.ops.math", ["acme"], True),
        ("acme.ops", ["other", "acme.ops"], True),
        ("acme_user", ["acme"], False),
        ("acme.user", ["acme.plugin"], False),
        ("acme", [], False),
        ("tensorplug.imaginary", [], True),
        ("tensorplug_user", [], False),
    ],
)
def test_plugins_are_left_out_by_their_packages(name, packages, left_out, sites, engine):
    engine.devices.source.packages = lambda: packages
    module(name, OP).twice(tp.asarray(1.0))
    line = inspect.currentframe().f_lineno - 1
    expected = (__file__, line) if left_out else (f"{name}.py", 2)
    assert {(site.file, site.line) for site in sites} == {expected}


def test_among_plugins_the_innermost_line_is_found(engine, monkeypatch):
    """As in a thread that a plugin has started for an example of its own."""
    engine.devices.source.packages = lambda: ["acme"]
    result = []
    inner = module("acme.ops", "def run(): return find()\n")
    outer = module("acme", "\ndef run(): found.append(inner.run())\n")
    inner.find, outer.inner, outer.found = callsite.find, inner, result
    monkeypatch.setattr("threading.__name__", "acme.threads")  # its frames are below all others
    thread = threading.Thread(target=contextvars.copy_context().run, args=(outer.run,))
    thread.start()
    thread.join()
    assert result == [CallSite("acme.ops.py", 1, "run")]


def test_an_observer_is_not_taken_for_the_caller(sites):
    tp.exp(tp.asarray(1.0))
    line = inspect.currentframe().f_lineno - 1
    assert (sites[0].function, sites[0].line) == (
        "test_an_observer_is_not_taken_for_the_caller",
        line,
    )


def test_a_site_keeps_nothing_alive(sites):
    class Big:
        pass

    def work():
        big = Big()
        tp.exp(tp.asarray(1.0))
        return weakref.ref(big)

    gc.disable()
    try:
        assert work()() is None
    finally:
        gc.enable()
    assert len(sites) == 1


def test_the_packages_are_those_of_installed_plugins_that_are_loaded():
    with isolated_engine() as engine:
        before = engine.devices.source.packages()
        engine.open("cpu")
        assert sorted(engine.devices.source.packages()) == sorted([*before, "tensorplug_cpu"])
        tp.register_backend("mine", lambda: engines.MemoryBackend("mine"))
        engine.open("mine")  # the running program's own
        assert sorted(engine.devices.source.packages()) == sorted([*before, "tensorplug_cpu"])


def test_engines_without_plugins_have_none():
    made = engines.make()
    assert not hasattr(made.devices.source, "packages")
    with engines.using(made):
        assert callsite.find().file == __file__
