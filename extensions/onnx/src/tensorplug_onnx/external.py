"""Weights that lie in files beside the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from tensorplug_onnx.errors import ExternalDataError

if TYPE_CHECKING:
    from tensorplug_onnx.values import Host


_MOST_DIGITS = 20  # of a number of bytes


def is_external(tensor: TensorProto) -> bool:
    """Return whether the elements of a tensor lie in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def read_external(tensor: TensorProto, folder: Path | None) -> Host:
    """Return the elements of a tensor, mapped from a file in the folder of the model.

    Nothing is read until an element is: models may be larger than memory.

    Raises:
        ExternalDataError: the file is missing, too short, or outside the folder.

    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    what = f"initializer {tensor.name!r}"
    if folder is None:
        raise ExternalDataError(f"{what} lies in another file, and the model has no folder")
    path = _path_within(folder, entries.get("location", ""), what)
    offset, length = (_count(entries, key, what) for key in ("offset", "length"))
    try:
        dtype = tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError:
        raise ExternalDataError(f"{what}: there is no element type {tensor.data_type}") from None
    if dtype.hasobject:
        raise ExternalDataError(f"{what} is text, which must lie in the file of the model")
    shape = tuple(tensor.dims)
    needed = math.ceil(math.prod(shape) * _bits(tensor.data_type, dtype) / 8)
    size = path.stat().st_size
    if min(shape, default=0) < 0 or (length is not None and length != needed):
        raise ExternalDataError(
            f"{what} of {dtype}{list(shape)} needs {needed} bytes, the model says {length}"
        )
    if (offset or 0) + needed > size:
        raise ExternalDataError(
            f"{what} needs bytes {offset or 0} to {(offset or 0) + needed} of {path.name}, "
            f"which has {size}"
        )
    if not needed:
        return np.zeros(shape, dtype)
    raw = np.memmap(path, np.uint8, "r", offset or 0, (needed,))
    if _bits(tensor.data_type, dtype) < 8:
        from onnx import numpy_helper  # unpacks what lies several to a byte

        packed = TensorProto(data_type=tensor.data_type, dims=shape, raw_data=raw.tobytes())
        return np.asarray(numpy_helper.to_array(packed))
    return np.asarray(raw.view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape))


def _path_within(folder: Path, location: str, what: str) -> Path:
    """Return the file of a location, links followed, which lies in the folder."""
    root = folder.resolve()
    try:
        path = (root / location).resolve()
        inside = path.is_relative_to(root) and not Path(location).is_absolute()
        found = bool(location) and inside and path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links
        raise ExternalDataError(f"{what}: location {location!r} is no path: {error}") from None
    if not inside:
        raise ExternalDataError(
            f"{what}: location {location!r} leads out of the folder of the model"
        )
    if not found:
        raise ExternalDataError(f"{what}: there is no file {location!r} beside the model")
    return path


def _count(entries: dict[str, str], key: str, what: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS):
        raise ExternalDataError(f"{what}: {key} is {text!r}, must be a number of bytes")
    return int(text)


_PACKED = {
    getattr(TensorProto, name): bits
    for name, bits in (
        ("INT4", 4), ("UINT4", 4), ("FLOAT4E2M1", 4), ("INT2", 2), ("UINT2", 2),
    )
    if hasattr(TensorProto, name)
}  # fmt: skip


def _bits(data_type: int, dtype: np.dtype[Any]) -> int:
    return _PACKED.get(data_type, 8 * dtype.itemsize)
