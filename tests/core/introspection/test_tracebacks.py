"""Tracebacks lack the core's frames where Python, IPython or pytest shows them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
import types

import pytest

import tensorplug as tp
from tensorplug.introspection import tracebacks

HINT = "Frames of tensorplug are hidden; TENSORPLUG_TRACEBACK=full shows them."


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.delenv("TENSORPLUG_TRACEBACK", raising=False)


@pytest.fixture
def shown(monkeypatch):
    """Yield what the hook that was installed first has been given: names of frames, and text."""
    result = []

    def hook(kind, error, trace):
        assert type(error) is kind
        assert error.__traceback__ is trace
        result.append(([frame.name for frame in traceback.extract_tb(trace)], text_of(error)))

    monkeypatch.setattr(sys, "excepthook", hook)
    monkeypatch.setattr(threading, "excepthook", lambda given: hook(*given[:3]))
    tracebacks.install()
    return result


def text_of(error):
    return "".join(traceback.format_exception(error))


def raised(function):
    try:
        function()
    except BaseException as error:  # noqa: BLE001  # the test looks at any
        return error
    raise AssertionError("nothing was raised")


def divide(x):
    return x.sum() / (1 // 0)


def add(x):
    return x + tp.zeros((4,))


FAILING = [  # what fails, the frames of this file below that of `raised`
    (lambda: tp.zeros((2, 3)) + tp.zeros((4,)), ["<lambda>"]),
    (lambda: tp.nn.conv2d(tp.zeros((2, 3)), tp.zeros((4,))), ["<lambda>"]),
    (lambda: tp.zeros((2, 3)).reshape((5,)), ["<lambda>"]),
    (lambda: tp.zeros((2, 3))[7], ["<lambda>"]),
    (lambda: len(tp.asarray(3)), ["<lambda>"]),  # a TypeError, raised on purpose
    (lambda: tp.no_such_name, ["<lambda>"]),
    (lambda: tp.nn.no_such_name, ["<lambda>"]),
    (lambda: tp.linalg.cholesky([[0.0, 1.0], [1.0, 0.0]]), ["<lambda>"]),
    (lambda: tp.grad(add)(tp.zeros((3,))), ["<lambda>", "add"]),
    (lambda: tp.compile(add)(tp.zeros((3,))), ["<lambda>", "add"]),
    (lambda: tp.vmap(add)(tp.zeros((2, 3))), ["<lambda>", "add"]),
    (lambda: tp.grad(divide)(tp.zeros((3,))), ["<lambda>", "divide"]),
    (lambda: tp.compile(divide)(tp.zeros((3,))), ["<lambda>", "divide"]),
    (lambda: tp.vmap(divide)(tp.zeros((2, 3))), ["<lambda>", "divide"]),
    (lambda: tp.cond(True, divide, divide, tp.zeros((3,))), ["<lambda>", "divide"]),
]


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("way", ["process", "thread"])
@pytest.mark.parametrize(("function", "frames"), FAILING)
def test_only_the_users_frames_are_shown(shown, function, frames, way):
    error = raised(function)
    whole, notes = error.__traceback__, list(getattr(error, "__notes__", ()))
    if way == "process":
        sys.excepthook(type(error), error, whole)
    else:
        thread = threading.current_thread()
        threading.excepthook(threading.ExceptHookArgs((type(error), error, whole, thread)))
    [(names, text)] = shown
    assert names == ["raised", *frames]
    assert str(error) in text
    assert text.splitlines()[-1] == HINT
    assert error.__traceback__ is whole, "debuggers and logs see every frame"
    assert len(traceback.extract_tb(whole)) > len(names)
    assert list(getattr(error, "__notes__", ())) == notes


@pytest.mark.usefixtures("on_the_cpu")
def test_causes_are_shortened_too(shown):
    def chain():
        try:
            add(tp.zeros((3,)))
        except tp.errors.ShapeError as error:
            raise RuntimeError("the model") from error

    error = raised(chain)
    group = ExceptionGroup("several", [error])
    sys.excepthook(ExceptionGroup, group, group.__traceback__)
    [(_, text)] = shown
    assert text.count("test_tracebacks.py") == 4  # chain, twice, add and raised
    assert "dispatch" not in text


@pytest.mark.parametrize(
    ("value", "whole"), [("short", False), ("full", True), (" full ", True), ("ful", True)]
)
@pytest.mark.usefixtures("on_the_cpu")
def test_the_environment_variable_shows_whole_tracebacks(shown, monkeypatch, value, whole):
    error = raised(FAILING[0][0])
    monkeypatch.setenv("TENSORPLUG_TRACEBACK", value)
    sys.excepthook(type(error), error, error.__traceback__)
    [(names, text)] = shown
    assert ("dispatch_binary" in names) is whole
    assert (HINT in text) is not whole


LINES = [  # module, line that raises, whether its frame is shown
    ("tensorplug.part", "raise ValueError", False),
    ("tensorplug.part", "raise Shape", False),
    ("tensorplug.part", "{}['a fault of ours']", True),
    ("tensorplug.part", "raise AssertionError", True),
    ("tensorplug.part", "raise KeyboardInterrupt", False),
    ("tensorplug.part", "interrupt()", False),
    ("tensorplug_acme.kernels", "raise Shape", False),
    ("tensorplug_acme.kernels", "raise ValueError", True),
    ("tensorplugged", "raise Shape", True),
    ("acme", "raise Shape", True),
]


@pytest.mark.parametrize(("module", "line", "visible"), LINES)
def test_which_frames_are_hidden(shown, tmp_path, module, line, visible):
    def interrupt():
        raise KeyboardInterrupt

    path = tmp_path / "part.py"
    path.write_text(f"def fail():\n    {line}\n", encoding="utf-8")
    names = {"__name__": module, "Shape": tp.errors.ShapeError, "interrupt": interrupt}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    error = raised(names["fail"])
    sys.excepthook(type(error), error, error.__traceback__)
    assert ("fail" in shown[0][0]) is visible


def test_an_exception_that_has_nothing_to_do_with_us(shown):
    error = raised(lambda: 1 // 0)
    sys.excepthook(type(error), error, error.__traceback__)
    assert shown == [(["raised", "<lambda>"], text_of(error))]


@pytest.mark.usefixtures("on_the_cpu")
def test_tracebacks_are_short_in_ipython(monkeypatch):
    given = []

    class Formatter:
        def structured_traceback(self, kind, error, trace=None, tb_offset=None, context=5):
            assert type(error) is kind
            given.append((traceback.extract_tb(trace), tb_offset, context))
            return [text_of(error)]

    shell = types.SimpleNamespace(InteractiveTB=Formatter())
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    tracebacks.install()
    error = raised(FAILING[0][0])
    show = shell.InteractiveTB.structured_traceback
    [text] = show(type(error), error, error.__traceback__, 1, context=3)
    [(frames, *options)] = given
    assert [frame.name for frame in frames] == ["raised", "<lambda>"]
    assert options == [1, 3]
    assert text.splitlines()[-1] == HINT


PROGRAM = """\
import threading
import tensorplug as tp
a = tp.zeros((2, 3), device="cpu")
def work():
    a + tp.zeros((4,), device="cpu")
thread = threading.Thread(target=work)
thread.start()
thread.join()
work()
"""


def run(arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done


def test_in_a_process_of_its_own(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    short = run([str(path)]).stderr
    assert "core" not in short
    assert short.count("a + tp.zeros") == 2
    message = (
        "Add(a=float32[2,3], b=float32[4]): shapes [2, 3] and [4] cannot be broadcast together"
    )
    assert short.splitlines()[-2:] == [f"tensorplug.errors.ShapeError: {message}", HINT]
    full = run([str(path)], TENSORPLUG_TRACEBACK="full").stderr
    assert full.count("in dispatch_binary") == 2


@pytest.mark.slow
@pytest.mark.parametrize(("value", "whole"), [("short", False), ("full", True)])
def test_under_pytest(tmp_path, value, whole):
    path = tmp_path / "test_program.py"
    calls = ["a + a.T", "tp.vmap(lambda x: x @ a)(a)", "tp.no_such_name", "a.sum(axis=9)"]
    tests = "".join(f"def test_{at}():\n    {call}\n" for at, call in enumerate(calls))
    start = "import tensorplug as tp\na = tp.zeros((2, 3), device='cpu')\n"
    path.write_text(start + tests, encoding="utf-8")
    plain = ["-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    out = run(["-m", "pytest", *plain, str(path)], TENSORPLUG_TRACEBACK=value).stdout
    assert "4 failed" in out
    assert ("dispatch_binary" in out) is whole
