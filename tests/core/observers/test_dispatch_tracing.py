"""Traces of dispatch: a line per call with how it is answered, written before it runs."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
import textwrap
import threading

import pytest
from tests.core.support import engines

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import DeviceLostError
from tensorplug.observers.callsite import CallSite
from tensorplug.observers.dispatch_tracing import TracedCall


@pytest.fixture
def engine():
    """Yield an engine whose backend "home" has the basic kernels, "away" Sub besides."""
    away = engines.basic_kernels()
    made = engines.make({"home": [engines.basic_kernels()], "away": [away]}, fallback="allow")
    with engines.using(made), tp.use_backend("home"):
        yield made


HOME = "by home-distribution 2.0 on home"


def lines(trace):
    """Return the lines of a trace without the line of Python, which must be in this file."""
    result = []
    for line in str(trace).splitlines():
        text, space, site = line.rpartition("  ")
        result.append(text if site.startswith(SHORT) and space else line)
    return result


SHORT = str(CallSite(__file__, 0, "")).rpartition(":")[0]


def test_a_native_call(engine):
    x = tp.asarray([[1.0, 2.0]])
    with tp.trace_dispatch() as t:
        y = tp.sum(x, axis=0)
        here = inspect.currentframe().f_lineno - 1
    site = CallSite(__file__, here, "test_a_native_call")
    call = "Sum(x=float32[1,2], axis=(0,), keep_dims=False) -> float32[2]"
    assert t.calls == [
        TracedCall(
            name="Sum",
            call=call,
            attributes={"axis": (0,), "keep_dims": False},
            how="native",
            owner="home-distribution 2.0",
            device="home",
            depth=0,
            site=site,
        )
    ]
    assert str(t) == f"{call}  native {HOME}  {site}"
    assert y.tolist() == [1.0, 2.0]


def test_decompositions_are_a_tree(engine):
    def outer(x):
        return tp.square(x) + tp.exp(x)

    spec = engines.spec_of("Outer")
    with tp.register_decomposition(spec, outer), tp.trace_dispatch() as t:
        tp.run_kernel(spec, [tp.asarray([1.0])])
        tp.negative(tp.asarray([1.0]))
    assert lines(t) == [
        "Outer(x=float32[1]) -> float32[1]  decomposed by the running program on home",
        "  Square(x=float32[1]) -> float32[1]  decomposed by the-core 1.0 on home",
        f"    Multiply(a=float32[1], b=float32[1]) -> float32[1]  native {HOME}",
        f"  Exp(x=float32[1]) -> float32[1]  native {HOME}",
        f"  Add(a=float32[1], b=float32[1]) -> float32[1]  native {HOME}",
        f"Neg(x=float32[1]) -> float32[1]  native {HOME}",
    ]
    assert [call.depth for call in t.calls] == [0, 1, 2, 1, 1, 0]
    assert len({call.site for call in t.calls}) == 2


def test_promotions_stand_around_the_casts_and_the_call(engine):
    a, b = tp.asarray([1, 2]), tp.asarray([1.0, 2.0])
    with tp.trace_dispatch() as t:
        a + b
        tp.concat([a, b])
    assert lines(t) == [
        "Add(a=int32[2], b=float32[2])  promoted to float32",
        f"  Cast(x=int32[2], dtype=float32) -> float32[2]  native {HOME}",
        f"  Add(a=float32[2], b=float32[2]) -> float32[2]  native {HOME}",
        "Concat(xs=[int32[2], float32[2]])  promoted to float32",
        f"  Cast(x=int32[2], dtype=float32) -> float32[2]  native {HOME}",
        f"  Concat(xs=[float32[2], float32[2]], axis=0) -> float32[4]  native {HOME}",
    ]
    assert [call.how for call in t.calls[:3]] == ["promoted", "native", "native"]


def test_copies_from_another_device(engine):
    x = tp.asarray([1.0, 2.0])
    with tp.use_backend("away"), tp.trace_dispatch() as t:
        tp.add(x, tp.asarray([1.0, 1.0]))
        x.to("home")  # it is there
        x.to("away")
    copied, added, again = t.calls
    assert lines(t)[0] == "float32[2]  copied to away"
    assert (copied.name, copied.how, copied.device) == ("Transfer", "transferred", "away")
    assert (copied.call, copied.depth) == ("float32[2]", 0)
    assert copied.site.line == added.site.line != again.site.line
    assert (added.name, again.how) == ("Add", "transferred")


def test_fallbacks_and_what_runs_there(engine):
    def subtract(a, b):
        return a - b

    with tp.register_kernel("Sub", "away", subtract):
        tp.kernels_for("away")  # opens it
        x = tp.asarray([3.0])
        with tp.trace_dispatch() as t:
            assert (x - x).tolist() == [0.0]
    call = "Sub(a=float32[1], b=float32[1]) -> float32[1]"
    assert lines(t) == [
        f"{call}  fallback by away-distribution 2.0 from home",
        *(2 * ["  float32[1]  copied to away"]),
        f"  {call}  native by the running program on away",
    ]


def test_multiple_outputs_and_long_attributes(engine):
    with tp.trace_dispatch() as t:
        tp.run_kernel("TopK", [tp.asarray([1.0, 2.0])], {"k": 1})
        tp.reshape(tp.asarray([1.0]), (1,) * 30)
    assert lines(t)[0].startswith("TopK(x=float32[2], k=1, sorted=True) -> float32[1], int32[1]  ")
    assert "shape=(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...) ->" in lines(t)[1]
    assert t.calls[1].attributes["shape"] == (1,) * 30


def test_traces_of_calls_that_raise(engine):
    def decomposed(x):
        tp.exp(x)
        raise DeviceLostError("the device\nis gone")

    spec = engines.spec_of("Outer")
    file = io.StringIO()
    with tp.register_decomposition(spec, decomposed), tp.trace_dispatch(file) as t:
        with pytest.raises(DeviceLostError):
            tp.run_kernel(spec, [tp.asarray([1.0])])
        tp.negative(tp.asarray([1.0]))
    assert lines(t)[1:3] == [
        f"  Exp(x=float32[1]) -> float32[1]  native {HOME}",
        "  raised DeviceLostError: the device is gone",
    ]
    assert [call.raised for call in t.calls] == ["DeviceLostError: the device\nis gone", "", ""]
    assert [call.depth for call in t.calls] == [0, 1, 0]
    assert file.getvalue() == f"{t}\n"


def test_gradients_are_traced_too(engine):
    x = tp.asarray([1.0])
    with tp.trace_dispatch() as t:
        tp.grad(lambda x: tp.sum(x * x))(x)
    names = [call.name for call in t.calls]
    assert names[:2] == ["Multiply", "Sum"]
    assert names.count("Multiply") == 3


def test_each_line_is_written_before_the_kernel_runs(engine):
    class File(io.StringIO):
        """A file that knows how much of it was flushed."""

        flushed = ""

        def flush(self):
            self.flushed = self.getvalue()

    file, seen = File(), []

    def kernel(x):
        seen.append(file.flushed)
        return x.copy()

    with tp.register_kernel("Log", "home", kernel), tp.trace_dispatch(file):
        tp.log(tp.asarray([1.0]))
        tp.exp(tp.log(tp.asarray([1.0])))
    assert [item.count("\n") for item in seen] == [1, 2]
    assert seen[0].startswith("Log(x=float32[1]) -> float32[1]  native by the running program on")


DIES = """
import os, sys
import tensorplug as tp
from tensorplug.testing import isolated_engine

def inner(x):
    os._exit(41)

with isolated_engine("cpu"):
    with tp.register_kernel("Log", "cpu", inner, override=True):
        with open(sys.argv[1], "w") as file, tp.trace_dispatch(file):
            x = tp.exp(tp.asarray([1.0, 2.0]))
            tp.log(x)  # dies here
"""


def test_the_last_line_names_the_kernel_that_kills_the_process(tmp_path):
    script, trace = tmp_path / "dies.py", tmp_path / "trace.txt"
    script.write_text(textwrap.dedent(DIES))
    ended = subprocess.run(
        [sys.executable, str(script), str(trace)], check=False, capture_output=True, cwd=tmp_path
    )
    assert ended.returncode == 41, ended.stderr.decode()
    written = trace.read_text().splitlines()
    assert [line.partition("(")[0] for line in written] == ["Exp", "Log"]
    here = 1 + DIES.splitlines().index("            tp.log(x)  # dies here")
    assert written[-1] == (
        f"Log(x=float32[2]) -> float32[2]  native by the running program on cpu  dies.py:{here}"
    )


def test_this_thread_and_this_block_only(engine):
    before = current_context()

    def in_a_thread():
        with engines.using(engine):
            tp.exp(tp.asarray([1.0]))

    with tp.trace_dispatch() as t, tp.tidy():
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
        tp.negative(tp.asarray([1.0]))
        with pytest.raises(RuntimeError, match="this trace_dispatch has been entered already"), t:
            pass
    assert current_context() is before
    tp.exp(tp.asarray([1.0]))
    assert [call.name for call in t.calls] == ["Neg"]
    assert str(tp.trace_dispatch()) == ""
