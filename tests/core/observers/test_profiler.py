"""Profiles: what each kernel call took and made, nested calls, memory, and who is watched."""

from __future__ import annotations

import asyncio
import inspect
import threading

import numpy as np
import pytest
from tests.core.support import clocks, engines

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DeviceLostError

FLOATS = TensorType(dt.float32, (3,))


def floats():
    return tp.asarray([1.0, 2.0, 3.0])


# Scenarios of TensorFlow.js --------------------------------------------------------------


def square_twice():
    x = floats()
    tp.square(x).dispose()
    tp.square(x).dispose()
    return x


@pytest.mark.usefixtures("on_the_cpu")
def test_square_dispose_square_dispose():
    p = tp.profile(square_twice)
    assert (p.new_bytes, p.peak_bytes, p.new_tensors) == (12, 24, 1)
    assert p.kernel_names == ["Square"]
    assert [
        (kernel.name, kernel.new_bytes, kernel.live_bytes, kernel.inputs, kernel.outputs)
        for kernel in p.kernels
    ] == [("Square", 12, 24, (FLOATS,), (FLOATS,))] * 2
    assert p.result.tolist() == [1.0, 2.0, 3.0]
    assert (p.uploads, p.transfers) == (1, 0)


def test_calls_of_a_decomposition_stand_before_it():
    """Each call of logSoftmax in order, and each name once, as in TensorFlow.js."""
    with engines.using(engines.make()):
        for name, function in {
            "Max": lambda x, *, reduction_indices, keep_dims: np.max(
                x, axis=reduction_indices, keepdims=keep_dims
            ),
            "Sub": lambda a, b: a - b,
            "Equal": lambda a, b: a == b,
            "Select": lambda condition, t, e: np.where(condition, t, e),  # noqa: PLW0108  # likewise
            "Log1p": lambda x: np.log1p(x),  # noqa: PLW0108  # a ufunc has no signature
        }.items():
            tp.register_kernel(name, "memory", function)
        p = tp.profile(tp.nn.log_softmax, [[1.0, 2.0]])
    counted = ["Equal", "Exp", "Select", "Sum", "Cast", "Sum", "Sub", "Add"]
    names = ["Max", "Sub", *counted, "Log1p", "Sub", "LogSoftmax"]
    assert [kernel.name for kernel in p.kernels] == names
    assert [kernel.depth for kernel in p.kernels] == [1] * 12 + [0]
    assert [kernel.how for kernel in p.kernels] == ["native"] * 12 + ["decomposed"]
    assert p.kernel_names == list(dict.fromkeys(names))


def test_every_call_gives_a_profile_of_its_own():
    with engines.using(engines.make()):
        x = floats()
        first, second = tp.profile(tp.exp, x), tp.profile(tp.negative, x)
        assert first is not second
        assert (first.kernel_names, second.kernel_names) == (["Exp"], ["Neg"])


def test_without_kernels_the_figures_are_zero():
    with engines.using(engines.make()):
        p = tp.profile(lambda: 7)
        fresh = tp.profile()
    assert p.result == 7
    for item in (p, fresh):
        assert (item.new_bytes, item.peak_bytes, item.new_tensors) == (0, 0, 0)
        assert (item.kernels, item.kernel_names, item.kernel_seconds) == ([], [], 0)
        assert (item.uploads, item.transfers) == (0, 0)
    assert fresh.seconds == 0


def test_an_exception_ends_the_profile_and_leaves_what_was_recorded():
    before = current_context()
    with engines.using(engines.make()):
        p = tp.profile()
        made = []

        def work():
            made.append(tp.exp(floats()))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), p:
            work()
        assert (p.new_bytes, p.peak_bytes, p.new_tensors) == (12, 24, 1)
        tp.negative(made[0])
        assert p.kernel_names == ["Exp"]
        with pytest.raises(ZeroDivisionError):
            tp.profile(lambda: 1 / 0)
    assert current_context() is before


# Times ----------------------------------------------------------------------------------


def test_a_kernel_s_time_is_the_device_s(clock):
    x = floats()
    clock.submit(50)  # by somebody before: no kernel of ours may be charged for it
    with tp.profile() as p:
        y = tp.exp(x)
        clock.now += 3 * clocks.MS  # of Python's own
        tp.negative(y)
    exp, negative = p.kernels
    assert [exp.seconds, negative.seconds] == pytest.approx([0.020, 0.001])
    assert [exp.self_seconds, negative.self_seconds] == pytest.approx([0.020, 0.001])
    waited = 0.050 - 0.00001
    assert [exp.start, negative.start] == pytest.approx([waited, waited + 0.023])
    assert p.kernel_seconds == pytest.approx(0.021)
    assert p.seconds == pytest.approx(waited + 0.024)
    assert repr(p) == "<Profile of 2 kernel calls in 73.990 ms>"


def test_the_time_of_a_decomposition_is_its_own_and_that_of_its_calls(clock):
    def decomposed(x):
        clock.now += 2 * clocks.MS
        return tp.square(tp.exp(x))

    spec = engines.spec_of("Detour")
    with tp.register_decomposition(spec, decomposed):
        p = tp.profile(lambda: tp.run_kernel(spec, [floats()]))
    assert [(kernel.name, kernel.depth) for kernel in p.kernels] == [
        ("Exp", 1),
        ("Multiply", 2),
        ("Square", 1),
        ("Detour", 0),
    ]
    assert [kernel.seconds for kernel in p.kernels] == pytest.approx([0.020, 0.005, 0.005, 0.027])
    assert [kernel.self_seconds for kernel in p.kernels] == pytest.approx([0.020, 0.005, 0, 0.002])
    assert p.kernel_seconds == pytest.approx(0.027)


def test_a_call_that_raises_is_not_recorded_but_what_it_called_is(clock):
    def decomposed(x):
        tp.exp(x)
        raise DeviceLostError

    spec = engines.spec_of("Detour")
    with tp.register_decomposition(spec, decomposed), tp.profile() as p:
        with pytest.raises(DeviceLostError):
            tp.run_kernel(spec, [floats()])
        tp.negative(floats())
    assert [(kernel.name, kernel.depth) for kernel in p.kernels] == [("Exp", 1), ("Neg", 0)]


def test_the_figures_may_be_read_during_the_profile(clock):
    with tp.profile() as p:
        x = floats()
        assert (p.new_bytes, p.peak_bytes, p.new_tensors, p.uploads) == (12, 12, 1, 1)
        tp.exp(x)
        assert (p.new_bytes, p.peak_bytes, p.new_tensors) == (12, 24, 1)
        assert p.seconds == pytest.approx(0.020)
    clock.now += clocks.MS
    del x
    assert (p.new_bytes, p.peak_bytes, p.new_tensors) == (12, 24, 1)  # as at its end
    assert p.seconds == pytest.approx(0.020)


# Records --------------------------------------------------------------------------------


def test_fields_of_a_record(clock):
    x = floats()
    with tp.profile() as p:
        y = x * 2.0
        tp.square(y)
    line = inspect.currentframe().f_lineno - 1
    record = p.kernels[0]
    assert (record.backend, record.device, record.how) == ("memory", "memory", "native")
    assert (record.name, record.owner) == ("Multiply", "memory-distribution 2.0")
    assert record.inputs == (FLOATS, TensorType(dt.float32, ()))
    assert record.thread == threading.get_ident()
    assert p.threads == {threading.get_ident(): threading.current_thread().name}
    assert (record.site.file, record.site.line) == (__file__, line - 1)
    inner, outer = p.kernels[1:]
    assert (inner.site, inner.owner) == (outer.site, record.owner)
    assert (outer.how, outer.owner) == ("decomposed", "the-core 1.0")
    assert outer.site.line == line


def test_lists_absent_inputs_attributes_and_multiple_outputs():
    with engines.using(engines.make()), tp.profile() as p:
        tp.concat([floats(), floats()])
        tp.run_kernel("TopK", [floats()], {"k": 2})
    join, top = p.kernels
    assert join.inputs == ((FLOATS, FLOATS),)
    assert join.attributes == {"axis": 0}
    assert top.outputs == (TensorType(dt.float32, (2,)), TensorType(dt.int32, (2,)))
    assert (join.new_bytes, top.new_bytes) == (24, 16)


def test_fallbacks_and_transfers():
    engine = engines.make({"home": [], "away": [engines.basic_kernels()]}, fallback="allow")
    with engines.using(engine), tp.use_backend("home"):
        x = floats()
        with tp.profile() as p:
            tp.exp(x)
            with tp.use_backend("away"):
                tp.negative(x)  # brought there for the call
            x.to("away")
            x.to("home")  # there already
    assert [(kernel.name, kernel.how, kernel.device, kernel.depth) for kernel in p.kernels] == [
        ("Exp", "native", "away", 1),
        ("Exp", "fallback", "home", 0),
        ("Neg", "native", "away", 0),
    ]
    assert (p.transfers, p.uploads) == (3, 0)


def test_uploads_are_data_not_the_numbers_beside_tensors():
    with engines.using(engines.make()), tp.profile() as p:
        x = floats()
        tp.add(x, np.float32([1, 2, 3]))
        x * 2.0
        tp.run_kernel("Add", [x, 3.0])
        tp.asarray(2.0)
    assert p.uploads == 3


# Who is watched -------------------------------------------------------------------------


def test_this_thread_only(engine):
    def in_a_thread():
        with engines.using(engine):
            tp.exp(floats())

    with tp.profile() as p:
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
        tp.negative(floats())
    assert p.kernel_names == ["Neg"]


def test_a_thread_with_a_copy_of_the_context_is_seen_as_itself(engine):
    async def work():
        with tp.profile() as p:
            await asyncio.to_thread(tp.exp, floats())
            tp.negative(floats())
        return p

    p = asyncio.run(work())
    assert p.kernel_names == ["Exp", "Neg"]
    assert len({kernel.thread for kernel in p.kernels}) == len(p.threads) == 2
    assert {kernel.depth for kernel in p.kernels} == {0}


def test_tasks_have_profiles_of_their_own(engine):
    async def one(function, turns):
        with tp.profile() as p:
            for _ in range(turns):
                function(floats())
                await asyncio.sleep(0)
        return p

    async def both():
        return await asyncio.gather(one(tp.exp, 3), one(tp.negative, 2))

    first, second = asyncio.run(both())
    assert [kernel.name for kernel in first.kernels] == ["Exp"] * 3
    assert [kernel.name for kernel in second.kernels] == ["Neg"] * 2


def test_profiles_nest(engine):
    with tp.profile() as outer:
        tp.exp(floats())
        with tp.profile() as inner, tp.tidy(), tp.use_backend("other"):
            tp.negative(floats())
        tp.exp(floats())
    assert [kernel.name for kernel in inner.kernels] == ["Neg"]
    assert [kernel.name for kernel in outer.kernels] == ["Exp", "Neg", "Exp"]
    assert [kernel.device for kernel in outer.kernels] == ["memory", "other", "memory"]


def test_one_profile_is_made_once(engine):
    with tp.profile() as p, pytest.raises(RuntimeError, match="create another"), p:
        pass
    with (
        pytest.raises(RuntimeError, match="this profile has been used already; create another"),
        p,
    ):
        pass


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3,), {}, "profile: function must be callable, got int"),
        ((), {"by": "kernel"}, "profile: has no options; pass a function first"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(ArgumentError) as caught:
        tp.profile(*arguments, **options)
    assert str(caught.value) == message


def test_a_coroutine_function_is_refused():
    async def later():
        pass

    with pytest.raises(ArgumentError, match="write `with profile"):
        tp.profile(later)


def test_arguments_are_handed_on(engine):
    p = tp.profile(lambda a, *, b: (a, b), 1, b=2)
    assert p.result == (1, 2)
