"""Traditional machine learning (domain ai.onnx.ml): encoders, scalers, maps.

Where text goes in or out, or a map, the host computes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.text import texts
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host, as_tensor, dtype_of, namespace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


DOMAIN: Final = "ai.onnx.ml"
_MISSING: Final = object()  # stands for every NaN among keys


def _array(values: Any) -> Any:
    """Return numbers or text of an attribute as ONNX types them."""
    if isinstance(values, np.ndarray):
        return values
    if values and isinstance(values[0], str):
        return texts(values, (len(values),))
    dtype = np.int64 if all(isinstance(value, int) for value in values) else np.float32
    return np.array(values, dtype)


def labelled(ints: Sequence[int], strings: Sequence[str]) -> Any:
    """Return the labels of classes: numbers or text."""
    return texts(strings, (len(strings),)) if strings else np.array(ints, np.int64)


# Maps from one value to another -----------------------------------------------------------


def _mapped(x: Any, keys: Any, values: Any, default: Any) -> Any:
    """Return the value of the last key that equals each element; all NaN are one key."""
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys have {len(values)} values")
    if "string" in (dtype_of(keys), dtype_of(values)):
        return _mapped_on_host(as_host(x), keys, values, default)
    if dtype_of(x) != dtype_of(keys):
        raise ValueError(f"keys of {dtype_of(keys)} do not fit to {dtype_of(x)}")
    xp = namespace(x)
    default = np.asarray(default).reshape(()).astype(values.dtype)
    _, last = np.unique(keys[::-1], return_index=True, equal_nan=True)
    chosen = len(keys) - 1 - last  # positions of the keys in ascending order, NaN last
    ordered, results = keys[chosen], values[chosen]
    if not len(ordered):
        return xp.full(x.shape, default.item(), dtype=default.dtype.name)
    missing = ordered.dtype.kind == "f" and bool(np.isnan(ordered[-1]))
    found = xp.full(x.shape, default.item(), dtype=default.dtype.name)
    count = len(ordered) - missing
    if count:
        table = xp.asarray(ordered[:count])
        place = xp.searchsorted(table, xp.reshape(x, (-1,)))
        place = xp.reshape(xp.minimum(place, xp.asarray(count - 1, dtype=place.dtype)), x.shape)
        flat = xp.reshape(place, (-1,))
        equal = xp.reshape(xp.take(table, flat, axis=0), x.shape) == x
        taken = xp.reshape(xp.take(xp.asarray(results[:count]), flat, axis=0), x.shape)
        found = xp.where(equal, taken, found)
    if missing:
        found = xp.where(xp.isnan(x), xp.asarray(results[-1]), found)
    return found


def _mapped_on_host(x: Any, keys: Any, values: Any, default: Any) -> Any:
    table = dict(zip(map(_key, keys.tolist()), values.tolist(), strict=True))
    other = np.asarray(default).reshape(()).item() if not isinstance(default, str) else default
    found = [table.get(_key(one), other) for one in x.ravel().tolist()]
    if dtype_of(values) == "string":
        return texts(found, x.shape)
    return np.array(found, values.dtype).reshape(x.shape)


def _key(value: Any) -> Any:
    return _MISSING if isinstance(value, float) and math.isnan(value) else value


@rule("LabelEncoder", domain=DOMAIN, since=1, raw=True)
def encode_1(
    x: Any,
    *,
    classes_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Any:
    names, numbers = _array(classes_strings), np.arange(len(classes_strings))
    if dtype_of(x) == "string":
        return _mapped(x, names, numbers, default_int64)
    return _mapped(x, numbers, names, default_string)


@rule("CategoryMapper", domain=DOMAIN, raw=True)
def map_categories(
    x: Any,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Any:
    names, numbers = _array(cats_strings), np.array(cats_int64s, np.int64)
    if dtype_of(x) == "string":
        return _mapped(x, names, numbers, default_int64)
    return _mapped(x, numbers, names, default_string)


@rule("LabelEncoder", domain=DOMAIN, since=2, raw=True)
def encode(
    x: Any,
    *,
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    keys_tensor: Any = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
    values_tensor: Any = None,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Any = None,
) -> Any:
    keys = _only("keys", keys_floats, keys_int64s, keys_strings, keys_tensor)
    values = _only("values", values_floats, values_int64s, values_strings, values_tensor)
    kinds = {"f": default_float, "i": default_int64}
    default = kinds.get(values.dtype.kind, default_string)
    return _mapped(x, keys, values, default if default_tensor is None else default_tensor)


def _only(what: str, floats: Any, ints: Any, strings: Any, tensor: Any) -> Any:
    present = [
        np.array(floats, np.float32) if floats is not None else None,
        np.array(ints, np.int64) if ints is not None else None,
        texts(strings, (len(strings),)) if strings is not None else None,
        tensor,
    ]
    found = [one for one in present if one is not None]
    if len(found) != 1:
        raise ValueError(f"one of the attributes {what}_* must be given, got {len(found)}")
    return found[0].ravel()


# Features ---------------------------------------------------------------------------------


@rule("ArrayFeatureExtractor", domain=DOMAIN, raw=True)
def extract(x: Any, positions: Any) -> Any:
    xp = namespace(x, positions)
    if xp is tp:
        x, positions = as_tensor(x), as_tensor(positions)
    found = xp.take(x, xp.reshape(positions, (-1,)), axis=-1)
    return xp.reshape(found, (1, -1)) if x.ndim == 1 else found


@rule("Binarizer", domain=DOMAIN)
def binarize(x: Any, *, threshold: float = 0.0, xp: ModuleType) -> Any:
    return xp.astype(x > threshold, x.dtype)


@rule("FeatureVectorizer", domain=DOMAIN)
def vectorize(*inputs: Any, inputdimensions: Sequence[int] = (), xp: ModuleType) -> Any:
    del inputdimensions  # the inputs have them
    rows = [xp.reshape(x, (1, -1)) if x.ndim == 1 else x for x in inputs]
    return xp.concat([xp.astype(row, xp.float32) for row in rows], axis=1)


@rule("Imputer", domain=DOMAIN)
def impute(
    x: Any,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
    xp: ModuleType,
) -> Any:
    floating = "float" in str(x.dtype)
    new, old = (
        (imputed_value_floats, replaced_value_float)
        if floating
        else (imputed_value_int64s, replaced_value_int64)
    )
    values = xp.astype(xp.asarray(np.array(new)), x.dtype)
    missing = xp.isnan(x) if floating and math.isnan(old) else x == old
    return xp.where(missing, values, x)


@rule("Normalizer", domain=DOMAIN)
def normalize(x: Any, *, norm: str = "MAX", xp: ModuleType) -> Any:
    """Rows of zeros stay zeros."""
    y = xp.astype(x, xp.float32)
    if norm == "MAX":
        size = xp.max(y, axis=-1, keepdims=True)
    elif norm == "L1":
        size = xp.sum(xp.abs(y), axis=-1, keepdims=True)
    elif norm == "L2":
        size = xp.sqrt(xp.sum(y * y, axis=-1, keepdims=True))
    else:
        raise ValueError(f"norm must be 'MAX', 'L1' or 'L2', got {norm!r}")
    return y / xp.where(size == 0, xp.ones_like(size), size)


@rule("OneHotEncoder", domain=DOMAIN, raw=True)
def one_hot(
    x: Any,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    zeros: int = 1,
) -> Any:
    categories = labelled(cats_int64s, cats_strings)
    if dtype_of(categories) == "string":
        x = as_host(x)
    xp = namespace(x)
    ids = x if dtype_of(x) == "string" else xp.astype(x, xp.int64)
    equal = ids[..., None] == (categories if xp is np else xp.asarray(categories))
    if not zeros and not bool(as_host(xp.all(xp.any(equal, axis=-1))).item()):
        raise ValueError("an element is in no category, and zeros is 0")
    return xp.astype(equal, xp.float32)


@rule("Scaler", domain=DOMAIN)
def scale(
    x: Any,
    *,
    offset: Sequence[float] = (0.0,),
    scale: Sequence[float] = (1.0,),
    xp: ModuleType,
) -> Any:
    shift, factor = (xp.asarray(np.array(one, np.float32)) for one in (offset, scale))
    return (xp.astype(x, xp.float32) - shift) * factor


# Maps -----------------------------------------------------------------------------------------


@rule("ZipMap", domain=DOMAIN, host=None)
def zip_map(
    x: Any,
    *,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
) -> list[dict[Any, Any]]:
    keys = classlabels_strings or classlabels_int64s
    return [dict(zip(keys, row, strict=True)) for row in np.atleast_2d(x)]


@rule("CastMap", domain=DOMAIN, host=None)
def cast_map(
    values: Mapping[int, Any],
    *,
    cast_to: str = "TO_FLOAT",
    map_form: str = "DENSE",
    max_map: int = 1,
) -> Any:
    kinds = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": str}
    kind: Any = kinds[cast_to]
    keys = sorted(values) if map_form == "DENSE" else range(max_map)
    if map_form != "DENSE" and not all(0 <= key < max_map for key in values):
        raise ValueError(f"keys must be below max_map, {max_map}")
    found = [kind(values[key]) if key in values else kind() for key in keys]
    return texts(found, (1, len(found))) if kind is str else np.array([found], kind)


@rule("DictVectorizer", domain=DOMAIN, host=None)
def vectorize_map(
    values: Mapping[Any, Any],
    *,
    int64_vocabulary: Sequence[int] = (),
    string_vocabulary: Sequence[str] = (),
) -> Any:
    vocabulary = int64_vocabulary or string_vocabulary
    unknown = values.keys() - set(vocabulary)
    if unknown:
        raise ValueError(f"{min(unknown)!r} is not in the vocabulary")
    present = [np.asarray(value) for value in values.values()]
    if any(value.dtype.kind in "OUT" for value in present):
        return texts([str(values.get(key, "")) for key in vocabulary], (1, len(vocabulary)))
    dtype = np.result_type(*present) if present else np.dtype(np.float32)
    return np.array([[values.get(key, 0) for key in vocabulary]], dtype)
