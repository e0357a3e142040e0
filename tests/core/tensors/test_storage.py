"""Saving and loading named tensors: the file, the loaded tensors, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("sharing_engine")

SAVED = sorted(dtype.name for dtype in dt.FIXED - {dt.complex128})


def numbers(dtype, shape):
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7
    return (whole * (1 + 2j if dtype.startswith("complex") else 1)).astype(dt.of(dtype).numpy)


def same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


# Round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["sharing", "memory"])
@pytest.mark.parametrize("dtype", SAVED)
def test_round_trip(path, dtype, device):
    given = {str(shape): numbers(dtype, shape) for shape in [(), (0,), (2, 0, 3), (5,), (2, 3)]}
    tp.save({name: tp.asarray(array).to(device) for name, array in given.items()}, path)
    loaded = tp.load(path, device=device)
    assert loaded.keys() == given.keys()
    for name, x in loaded.items():
        assert (type(x), x.device) == (tp.Tensor, device)
        same(x.numpy(), given[name])
    for name, array in safetensors.numpy.load_file(path).items():
        same(array, given[name])


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: np.broadcast_to(x[0], (3, 3))]
)
def test_elements_are_saved_in_their_order(path, view):
    array = view(np.arange(6.0).reshape(2, 3))
    tp.save({"x": tp.from_dlpack(array), "array": array}, path)
    same(tp.load(path)["x"].numpy(), array)
    same(tp.load(path)["array"].numpy(), array)


def test_special_values_keep_their_bits(path):
    bits = np.array([0x7FC00001, 0xFFC00000, 0x80000000, 0x7F800000, 1], np.uint32)
    tp.save({"x": tp.asarray(bits.view(np.float32))}, path)
    assert tp.load(path)["x"].numpy().view(np.uint32).tolist() == bits.tolist()


def test_tensor_likes_may_be_saved(path):
    tp.save({"list": [1, 2], "number": 2.5, "bool": np.array([True])}, path)
    loaded = tp.load(path)
    types = {name: str(x.type) for name, x in loaded.items()}
    assert types == {"list": "int32[2]", "number": "float32[]", "bool": "bool[1]"}
    assert loaded["list"].tolist() == [1, 2]


def test_variables_are_saved_by_their_contents(path):
    weights = tp.Variable([1.0, 2.0], name="weights")
    tp.save({weights.name: weights}, path)
    weights.assign([0.0, 0.0])
    weights.assign(tp.load(path)["weights"])
    assert weights.tolist() == [1, 2]


def test_files_of_others(path):
    given = {"w": numbers("float16", (3, 2)), "b.0": numbers("int64", (2,))}
    safetensors.numpy.save_file(given, path, metadata={"format": "np"})
    for name, x in tp.load(path).items():
        same(x.numpy(), given[name])


def test_files_of_torch_and_for_torch(path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    files = pytest.importorskip("safetensors.torch")
    given = {"w": torch.arange(6.0).reshape(2, 3), "h": torch.ones(2, dtype=torch.float16)}
    files.save_file(given, path)
    loaded = tp.load(path)
    for name, x in given.items():
        same(loaded[name].numpy(), x.numpy())
    tp.save(loaded, path)
    for name, x in files.load_file(path).items():
        assert torch.equal(x, given[name])


def test_an_empty_file(path):
    tp.save({}, path)
    assert tp.load(path) == {}
    assert safetensors.numpy.load_file(path) == {}


def test_metadata_is_in_the_header(path):
    tp.save({"x": tp.ones((1,))}, path, metadata={"author": "ÄÖ", "": "empty"})
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"author": "ÄÖ", "": "empty"}
    tp.save({"x": tp.ones((1,))}, path)
    with safetensors.safe_open(path, framework="numpy") as file:
        assert not file.metadata()


def test_names_choose_and_order(path):
    tp.save({name: tp.asarray(at) for at, name in enumerate("abc")}, path)
    assert {k: x.item() for k, x in tp.load(path, names=["c", "a"]).items()} == {"c": 2, "a": 0}
    assert list(tp.load(path, names=["c", "a"])) == ["c", "a"]
    assert tp.load(path, names=()) == {}
    for name in ("ä", "with space", "a/b", "."):
        tp.save({name: tp.ones((1,))}, path)
        assert list(tp.load(path)) == [name]


def test_devices_of_loaded_tensors(path):
    tp.save({"x": tp.ones((2,))}, path)
    assert tp.load(path)["x"].device == "sharing"
    assert tp.load(path, device="host")["x"].device == "host"
    with tp.use_backend("memory"):
        assert tp.load(path)["x"].device == "memory"
        with tp.tidy():
            x = tp.load(path, device="sharing")["x"]
            assert x.device == "sharing"
    assert x.is_disposed


def test_loaded_tensors_do_not_hang_on_the_file(path):
    tp.save({"x": tp.asarray([1.0, 2.0])}, path)
    x = tp.load(path)["x"]
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(0)
        file.write(bytes(size))
    assert x.tolist() == [1, 2]


def test_on_the_tape_constants_are_saved(path):
    def f(p):
        tp.save({"p": p}, path)
        return tp.sum(tp.load(path)["p"] * p)

    assert tp.grad(f)(tp.asarray([2.0, 3.0])).tolist() == [2, 3]


# Nested dicts -----------------------------------------------------------------------------


def test_nested_dicts_there_and_back(path):
    given = {"a": {"b": {"w": [1.0], "v": [2.0]}, "c": [3.0]}, "d": [4.0]}
    tp.save(given, path)
    flat = tp.load(path, nested=False)
    assert {name: x.tolist() for name, x in flat.items()} == {
        "a.b.w": [1],
        "a.b.v": [2],
        "a.c": [3],
        "d": [4],
    }
    nested = tp.load(path, nested=True)
    assert tp.tree_map(tp.Tensor.tolist, nested) == given


def test_dots_in_flat_names_are_fine(path):
    given = {"a.b": tp.ones((1,)), "a!": tp.ones((1,)), "a": tp.zeros((1,))}
    tp.save(given, path)  # as text, "a!" would stand between the others
    assert set(tp.load(path)) == {"a.b", "a!", "a"}
    with pytest.raises(
        ArgumentError, match=r"load: nested dicts cannot contain both 'a' and 'a\.b'"
    ):
        tp.load(path, nested=True)
    assert set(tp.load(path, nested=True, names=["a.b"])["a"]) == {"b"}
