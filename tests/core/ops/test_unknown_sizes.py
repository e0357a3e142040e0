"""Kernels whose output shape depends on the data: native, on the host, differentiated."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import Source, basic_kernels, expect, make, using

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import UNKNOWN, KernelSpec, TensorType
from tensorplug.contract.tables import DecompositionTable
from tensorplug.errors import DTypeError, KernelOutputError, RegistrationError

FLOAT = dt.float32


def infer_positive(x: TensorType) -> tuple[TensorType, TensorType]:
    return TensorType(x.dtype, (UNKNOWN,)), TensorType(dt.int32, (UNKNOWN, x.rank))


POSITIVE = KernelSpec("Positive", ("x",), infer_positive, outputs=("values", "where"))
COMPRESSED = KernelSpec("Compressed", ("x",), lambda x: TensorType(x.dtype, (UNKNOWN,)))
TEXT = frozenset({dt.string})
WORDS = KernelSpec(
    "Words", ("text",), lambda text: TensorType(text.dtype, (UNKNOWN,)), accepts=TEXT
)
LENGTHS = KernelSpec("Lengths", ("text",), lambda text: TensorType(dt.int32, text.shape))


def positive(x):
    where = np.argwhere(x > 0).astype(np.int32)
    return [x[x > 0], where]


def compressed(x):
    return x[x > 0]


def words(text):
    return np.array(" ".join(text.ravel().tolist()).split(), dtype=text.dtype)


def lengths(text):
    return np.strings.str_len(text).astype(np.int32)


@pytest.fixture(params=["native", "host"])
def way(request):
    """Run on an engine that has the kernels itself, or by functions on the host."""
    engine = make()
    with using(engine):
        for spec, function in ((POSITIVE, positive), (COMPRESSED, compressed)):
            if request.param == "native":
                tp.register_kernel(spec, "memory", function)
            else:
                tp.register_decomposition(spec, function, on_host=True)
        yield request.param


def test_an_unknown_size_is_shown_and_compared():
    type_ = TensorType(FLOAT, (UNKNOWN, 3))
    assert (str(type_), type_.known) == ("float32[?,3]", False)
    assert TensorType(FLOAT, (4, 3)).known
    assert type_.admits(TensorType(FLOAT, (0, 3)))
    for dtype, shape in ((FLOAT, (4, 2)), (FLOAT, (3,)), (dt.int32, (4, 3))):
        assert not type_.admits(TensorType(dtype, shape))
        assert not TensorType(FLOAT, (4, 3)).admits(type_)


def test_each_call_gives_what_its_data_say(way):
    assert tp.explain(POSITIVE, [tp.asarray([1.0])]).how == way
    for row, values, where in (
        ([1.0, -1.0, 2.0], [1, 2], [[0], [2]]),
        ([-1.0, -1.0, -2.0], [], np.zeros((0, 1))),
        ([3.0, 1.0, 2.0], [3, 1, 2], [[0], [1], [2]]),
    ):
        found = tp.run_kernel(POSITIVE, {"x": tp.asarray(row)})
        expect(found[0], "float32", (len(values),), values)
        expect(found[1], "int32", (len(values), 1), where)
        single = tp.run_kernel(COMPRESSED, {"x": tp.asarray(row)})
        expect(single + single, "float32", (len(values),), np.array(values) * 2)


def test_gradients_have_the_shape_of_the_result(way):
    def rule(dy_values, x, where):
        return tp.scatter_nd(where, dy_values, x.shape)

    tp.register_gradient(POSITIVE, "x", rule)

    def f(x):
        values, _ = tp.run_kernel(POSITIVE, {"x": x})
        return tp.sum(values * values)

    tp.register_kernel("ScatterNd", "memory", _scatter)
    for row in ([1.0, -1.0, 2.0], [5.0, 4.0, 3.0]):
        expect(tp.grad(f)(tp.asarray(row)), "float32", (3,), np.maximum(row, 0) * 2)


def _scatter(indices, updates, *, shape):
    result = np.zeros(shape, updates.dtype)
    np.add.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


def test_an_output_that_is_not_of_the_inferred_type():
    with using(make()):
        tp.register_kernel(COMPRESSED, "memory", lambda x: x.reshape(1, -1))
        for _ in range(2):
            with pytest.raises(KernelOutputError) as caught:
                tp.run_kernel(COMPRESSED, {"x": tp.asarray([1.0])})
            assert "out is float32[1,1], but must be float32[?]" in str(caught.value)


def test_a_function_on_the_host_that_forgets_an_output():
    with using(make()):
        tp.register_decomposition(POSITIVE, compressed, on_host=True)
        with pytest.raises(TypeError, match="a function on the host returned ndarray, not a list"):
            tp.run_kernel(POSITIVE, {"x": tp.asarray([1.0])})


def test_floating_point_flags_are_ignored_on_the_host():
    spec = KernelSpec("Inverse", ("x",), lambda x: x)
    with using(make()), np.errstate(all="raise"):
        tp.register_decomposition(spec, lambda x: 1 / x, on_host=True)
        expect(tp.run_kernel(spec, {"x": tp.asarray([0.0, 2.0])}), "float32", (2,), [np.inf, 0.5])


def test_its_table_checks_the_signature():
    table = DecompositionTable()
    with pytest.raises(RegistrationError, match="decomposition of 'Compressed'"):
        table.on_host(COMPRESSED)(lambda y: y)
    table.on_host(COMPRESSED)(compressed)
    (entry,) = table
    assert entry.on_host
    with pytest.raises(RegistrationError, match="is in this table twice"):
        table.of(COMPRESSED)(compressed)


# Strings, on a device that has none ------------------------------------------------------


@pytest.fixture
def wordless():
    engine = make()
    with using(engine):
        tp.register_decomposition(WORDS, words, on_host=True)
        tp.register_decomposition(LENGTHS, lengths, on_host=True)
        yield engine


@pytest.mark.usefixtures("wordless")
def test_strings_live_on_the_host_and_numbers_on_the_device():
    text = tp.asarray(["one two", "", "three"])
    assert (str(text.dtype), text.device) == ("string", "host")
    assert tp.explain(WORDS, [text]).how == "host"
    for _ in range(2):
        found = tp.run_kernel(WORDS, {"text": text})
        assert (str(found.dtype), found.shape, found.device) == ("string", (3,), "host")
        assert found.numpy().tolist() == ["one", "two", "three"]
        counted = tp.run_kernel(LENGTHS, {"text": found})
        assert counted.device == "memory"
        expect(counted, "int32", (3,), [3, 3, 5])


@pytest.mark.usefixtures("wordless")
def test_a_device_without_strings_cannot_be_asked_to_hold_them():
    text = tp.asarray(["a"])
    assert text.to("host") is text
    with pytest.raises(DTypeError, match=r"string\[1\] is not possible on backend 'memory'"):
        text.to("memory")


def test_from_a_device_with_strings_they_come_along():

    engine = make({"memory": [basic_kernels()], "lettered": [basic_kernels()]})
    assert isinstance(engine.devices.source, Source)
    engine.devices.source.dtypes["lettered"] = dt.ANY
    with using(engine):
        tp.register_decomposition(WORDS, words, on_host=True)
        with tp.use_backend("lettered"):
            text = tp.asarray(["x y"])
            assert text.device == "lettered"
            assert tp.run_kernel(WORDS, {"text": text}).device == "lettered"
        assert tp.run_kernel(WORDS, {"text": text}).device == "host"
