"""Trees of tensors in files of the safetensors format. Nothing is pickled or unpickled.

A file maps names to tensors; ``file_trees`` says what the names of a tree's leaves are.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, overload

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    FileFormatError,
    PackageNotInstalledError,
    TensorplugError,
)
from tensorplug.tensors import file_trees

__all__ = ["load", "save"]

T = TypeVar("T")

_CODES: Final = {  # the format's names of dtypes
    "BOOL": dt.bool_,
    "I8": dt.int8,
    "I16": dt.int16,
    "I32": dt.int32,
    "I64": dt.int64,
    "U8": dt.uint8,
    "U16": dt.uint16,
    "U32": dt.uint32,
    "U64": dt.uint64,
    "F16": dt.float16,
    "F32": dt.float32,
    "F64": dt.float64,
    "C64": dt.complex64,
}


# Saving ---------------------------------------------------------------------------------


def save(
    tensors: Any,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a tree of tensors and numbers to a file in the safetensors format.

    The file replaces an old one only when it is complete.

    Args:
        tensors: a dict of tensors, or of anything ``asarray`` accepts, by name; or any tree of
            them: nested dicts, lists, tuples, named tuples, dataclasses. Keys, positions and
            fields are joined: ``{"a": [x, {"b": y}]}`` is saved as ``"a.0"`` and ``"a.1.b"``. A
            list without tensors is one tensor. Gradients are not recorded.
        path: of the file. The usual extension is ``.safetensors``.
        metadata: text by name, stored in the file's header; ``safetensors.safe_open`` reads it.
            There, ``"tensorplug.tree"`` lists the tree's lists, tuples and Python numbers, if any.

    Raises:
        DTypeError: a tensor is complex128 or string, which the format does not support.
        ArgumentError: names or metadata are not text; a part of the tree is empty or has a name
            with a dot, so that loading could not restore it; ``path`` is not a regular file.
        DisposedError: a tensor was disposed.
        PackageNotInstalledError: ``safetensors`` is not installed.
        OSError: the file cannot be written.

    Example:
        >>> import tensorplug as tp
        >>> params = {"layers": [tp.ones((2,)), tp.zeros((3,))], "rate": 0.1}
        >>> tp.save(params, "model.safetensors")
        >>> tp.load("model.safetensors", nested=True)["rate"]
        0.1

    """
    package = _package("save")
    record = file_trees.Record({}, {})
    arrays = {name: _dense(name, value) for name, value in file_trees.flat(tensors, record)}
    text = _with_record(_checked(metadata), record)
    target = Path(os.path.realpath(path))  # keeps a symbolic link
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise ArgumentError(f"save: {target} is not a regular file")
    scratch = target.with_name(f".tensorplug-{secrets.token_hex(8)}.tmp")
    try:
        scratch.open("xb").close()  # in the same folder, with the permissions of a new file
        rights = stat.S_IMODE((target if target.is_file() else scratch).stat().st_mode)
        try:
            package.numpy.save_file(arrays, scratch, metadata=text)
        except package.SafetensorError as error:  # not an error of the caller: that was checked
            raise OSError(f"save: {target} could not be written: {error}") from error
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())  # else a power cut could leave the name without the data
        scratch.chmod(rights)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _dense(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return the elements in row-major order, which the format requires."""
    try:
        # Conversion to an array would refuse a tensor for which a gradient is recorded.
        array = value.numpy() if isinstance(value, Tensor) else host_values.as_array(value)
    except TensorplugError as error:
        raise type(error)(f"save: {name!r}: {error}") from None
    except Exception as error:
        error.add_note(f"while {name!r} was saved")
        raise
    type_ = TensorType(dt.of(array.dtype), array.shape)
    if type_.dtype not in _CODES.values():
        instead = "text goes into metadata" if type_.dtype is dt.string else "use astype"
        raise DTypeError(
            f"save: {name!r} is {type_}, but safetensors does not support {type_.dtype}; {instead}"
        )
    return np.asarray(array, order="C")


def _checked(metadata: object) -> dict[str, str] | None:
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise ArgumentError(
            f"save: metadata must be a dict of strings, got {type(metadata).__name__}"
        )
    texts = dict(metadata)
    for text in (*texts.keys(), *texts.values()):
        if not isinstance(text, str) or not file_trees.encodes(text):
            raise ArgumentError(f"save: metadata must be text by name, but contains {text!r}")
    return texts


def _with_record(
    metadata: dict[str, str] | None, record: file_trees.Record
) -> dict[str, str] | None:
    if metadata is not None and file_trees.RECORD in metadata:
        raise ArgumentError(f"save: the metadata {file_trees.RECORD!r} is written by save itself")
    text = record.text()
    return metadata if text is None else {**(metadata or {}), file_trees.RECORD: text}


# Loading --------------------------------------------------------------------------------


@overload
def load(
    path: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: Literal[False] = False,
) -> dict[str, Tensor]: ...
@overload
def load(
    path: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: Literal[True],
) -> Any: ...
@overload
def load(path: str | os.PathLike[str], *, device: str | None = None, like: T) -> T: ...
def load(
    path: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: bool = False,
    like: Any = None,
) -> Any:
    """Return the tensors of a file in the safetensors format, by name.

    Args:
        path: of the file.
        names: of the tensors to read, in this order; all by default.
        device: of the tensors, such as ``"opencl"``; the active one by default.
        nested: split the names at dots into nested dicts, the inverse of ``save``. Lists, tuples
            and Python numbers that ``save`` wrote are lists, tuples and numbers again; named
            tuples and dataclasses become dicts.
        like: a tree with the structure and types of the one that was saved; the result is such a
            tree, with the same named tuples and dataclasses.

    Raises:
        FileFormatError: the file is truncated, corrupt, or of another format.
        DTypeError: tensorplug or the device does not support the dtype of a tensor (bfloat16, the
            float8 family); omit it with ``names``.
        ArgumentError: the file has no tensor of one of ``names``; with ``nested``, a name is
            also a prefix of another one; with ``like``, the names are not those of its leaves.
        ShapeError: with ``like``, a tensor has another shape than the one in ``like``; another
            dtype is a DTypeError.
        PackageNotInstalledError: ``safetensors`` is not installed.
        OSError: the file cannot be read. ``device`` may also raise the errors of ``use_backend``.

    """
    package = _package("load")
    Path(path).open("rb").close()  # its errors are more precise than the package's
    context = current_context()
    convert = engine_of(context).convert
    try:
        with package.safe_open(path, framework="numpy") as file:
            found = list(file.keys())
            if like is not None:
                names = _names_of(path, like, found, names, nested=nested)
            wanted = _wanted(path, found, names)
            record = file_trees.Record.of((file.metadata() or {}).get(file_trees.RECORD))
            if nested:
                file_trees.check_nesting(wanted)
            for name in wanted:
                _check_dtype(name, file.get_slice(name).get_dtype())
            loaded = {
                name: convert(
                    context, _read(file, name), None, f"load: {name!r}", device=device, copy=None
                )
                for name in wanted
            }
    except (package.SafetensorError, _UnreadableError) as error:
        raise FileFormatError(f"load: {path} is not a valid safetensors file: {error}") from error
    if like is not None:
        return file_trees.like(like, loaded, record, path)
    return file_trees.nested(loaded, record) if nested else loaded


def _names_of(
    path: object, like: Any, found: list[str], names: Iterable[str] | None, *, nested: bool
) -> list[str]:
    """Return the names of the leaves of ``like``, which must be those in the file."""
    if nested or names is not None:
        raise ArgumentError("load: with like, neither names nor nested can be passed")
    wanted = file_trees.names_of(like)
    extra = sorted(set(found) - set(wanted))
    if extra:
        raise ArgumentError(
            f"load: {path} has {extra[0]!r}"
            + (f" and {len(extra) - 1} more" if len(extra) > 1 else "")
            + ", which like does not have"
        )
    return wanted


class _UnreadableError(Exception):
    """NumPy cannot represent a tensor of the header."""


def _read(file: Any, name: str) -> np.ndarray[Any, Any]:
    """Return one tensor in memory of its own."""
    try:
        array: np.ndarray[Any, Any] = file.get_tensor(name)
    except ValueError as error:  # a dimension or a rank that is too large for NumPy
        raise _UnreadableError(f"{name!r}: {error}") from error
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise _UnreadableError(f"{name!r} is bool, but has bytes other than 0 and 1")
    return array


def _wanted(path: object, found: list[str], names: Iterable[str] | None) -> list[str]:
    if names is None:
        return found
    if isinstance(names, str):
        raise ArgumentError(f"load: names must be a list such as [{names!r}], got {names!r}")
    wanted = list(names)
    known = set(found)
    for name in wanted:
        if name not in known:
            listed = ", ".join(map(repr, found[:8])) + (", ..." if len(found) > 8 else "")
            raise ArgumentError(f"load: {path} has no {name!r}; it has {listed or 'nothing'}")
    return wanted


def _check_dtype(name: str, code: str) -> None:
    if code not in _CODES:
        raise DTypeError(
            f"load: {name!r} is {code}, which is not supported; supported are "
            f"{', '.join(_CODES)}. Convert it, or omit it with names=[...]"
        )


def _package(who: str) -> Any:
    try:
        import safetensors.numpy  # an optional dependency
    except ModuleNotFoundError as error:
        if error.name != "safetensors":
            raise
        raise PackageNotInstalledError(
            f"{who} needs the package safetensors: pip install 'tensorplug[io]'"
        ) from None
    return safetensors
