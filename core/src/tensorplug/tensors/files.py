"""Trees of tensors in files of the safetensors format. Nothing is pickled or unpickled.

A file maps names to tensors; ``file_trees`` says what the names of a tree's leaves are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    ArgumentError,
    BackendMemoryError,
    DTypeError,
    FileFormatError,
    TensorplugError,
)
from tensorplug.tensors import file_format, file_trees, scratch_files
from tensorplug.tensors.file_format import CODES, DTYPES, Header, UnreadableError

if TYPE_CHECKING:
    from io import FileIO


T = TypeVar("T")
Location = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_LARGE: Final = 1 << 26  # bytes; below that, nobody asks for the memory that is available

# Saving ---------------------------------------------------------------------------------


def save(
    tensors: Any,
    path: Location,
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a tree of tensors and numbers to a file in the safetensors format.

    The file replaces an old one only when it is complete.

    Args:
        tensors: a dict of tensors, or of anything ``asarray`` accepts, by name; or any tree of
            them: nested dicts, lists, tuples, named tuples, dataclasses. Keys, positions and
            fields are joined: ``{"a": [x, {"b": y}]}`` is saved as ``"a.0"`` and ``"a.1.b"``. A
            list without tensors is one tensor. Dataclasses without tensors, and fields that are
            None, are left out; ``load`` takes them from ``like``. Gradients are not recorded.
        path: of the file, as ``open`` takes it. The usual extension is ``.safetensors``.
        metadata: text by name, stored in the file's header; ``safetensors.safe_open`` reads it.
            There, ``"tensorplug.tree"`` says that the file holds a tree, and lists its lists,
            tuples and Python numbers; ``"tensorplug.packed"`` lists the tensors of 4 and 2 bits
            that the format lacks: they are stored as bytes, several elements in each, the first
            one in the lowest bits.

    Raises:
        DTypeError: a tensor is complex128 or string, which the format does not support.
        ArgumentError: names or metadata are not text; a part of the tree is empty or has a name
            with a dot, so that loading could not restore it; ``path`` is not a path, or not that
            of a regular file.
        DisposedError: a tensor was disposed.
        OSError: the file cannot be written.

    Examples:
        >>> params = {"layers": [tp.ones((2,)), tp.zeros((3,))], "rate": 0.1}
        >>> tp.save(params, "model.safetensors")
        >>> tp.load("model.safetensors")["rate"]
        0.1

    """
    leaves, record = file_trees.recorded(tensors)
    arrays = {name: _dense(name, value) for name, value in leaves}
    text = _with_record(_checked(metadata), record)
    target = Path(os.path.realpath(_checked_path("save", path)))  # keeps a symbolic link
    with scratch_files.scratch_file(target) as file:
        try:
            file_format.write(file, arrays, text)
        except OSError as error:  # such as a full disk, which names no file
            error.add_note(f"while {target} was saved")
            raise


def _checked_path(who: str, path: object) -> str:
    """Return a path as text.

    Raises:
        ArgumentError: it is not a path, no file system allows it, or it is that of a device or
            a pipe, which could wait forever.

    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise ArgumentError(
            f"{who}: path must be text, bytes or an os.PathLike, got {type(path).__name__}"
        )
    text = os.fsdecode(path)
    if "\0" in text:
        raise ArgumentError(f"{who}: path must not contain a null character, got {quoted(text)}")
    target = Path(text)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise ArgumentError(f"{who}: {text} is not a regular file")
    return text


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
    if type_.dtype not in DTYPES.values():
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
    for own in sorted({file_trees.RECORD, file_format.PACKED} & set(metadata or ())):
        raise ArgumentError(f"save: the metadata {own!r} is written by save itself")
    text = record.text()
    return metadata if text is None else {**(metadata or {}), file_trees.RECORD: text}


# Loading --------------------------------------------------------------------------------


@overload
def load(
    path: Location,
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: Literal[False],
) -> dict[str, Tensor]: ...
@overload
def load(
    path: Location, *, names: Iterable[str], device: str | None = None, nested: None = None
) -> dict[str, Tensor]: ...
@overload
def load(
    path: Location,
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: Literal[True] | None = None,
) -> Any: ...
@overload
def load(path: Location, *, device: str | None = None, like: T) -> T: ...
def load(
    path: Location,
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: bool | None = None,
    like: Any = None,
) -> Any:
    """Return the tensors of a file in the safetensors format, by name or as the tree of ``save``.

    Args:
        path: of the file, as ``open`` takes it.
        names: of the tensors to read, in this order; all by default.
        device: of the tensors, such as ``"opencl"``; the active one by default.
        nested: whether to split the names at dots into nested dicts, the inverse of ``save``.
            Lists, tuples and Python numbers that ``save`` wrote are lists, tuples and numbers
            again; named tuples and dataclasses become dicts. Without it, the result is a dict of
            tensors by name. By default, it is True for a file in which ``save`` wrote a tree: not
            one dict of tensors. It is False for other files, and with ``names``.
        like: a tree with the structure and types of the one that was saved; the result is such a
            tree, with the same named tuples and dataclasses.

    Raises:
        FileFormatError: the file is truncated, corrupt, or of another format.
        DTypeError: tensorplug or the device does not support the dtype of a tensor (the
            float6 family); omit it with ``names``.
        ArgumentError: the file has no tensor of one of ``names``; with ``nested``, a name is
            also a prefix of another one; with ``like``, the names are not those of its leaves;
            ``path`` is not a path, or not that of a regular file.
        BackendMemoryError: there is no room for a tensor, on the host or on the device.
        ShapeError: with ``like``, a tensor has another shape than the one in ``like``; another
            dtype is a DTypeError.
        OSError: the file cannot be read. ``device`` may also raise the errors of ``use_backend``.

    Examples:
        >>> tp.save({"w": tp.ones(2), "layers": [tp.zeros(3)]}, "params.safetensors")
        >>> tp.load("params.safetensors")["layers"][0]
        Tensor([0., 0., 0.], dtype=float32, device='cpu')
        >>> {name: str(x.type) for name, x in tp.load("params.safetensors", nested=False).items()}
        {'layers.0': 'float32[3]', 'w': 'float32[2]'}

    """
    text = _checked_path("load", path)
    context = current_context()
    convert = engine_of(context).convert
    try:
        with Path(text).open("rb", buffering=0) as file:
            header = Header.read(file)
            stored = list(header.entries)
            record = file_trees.Record.of(header.metadata.get(file_trees.RECORD))
            if like is not None:
                names = _names_of(text, like, stored, names, nested=nested)
            elif nested is None:
                nested = record.nested and names is None
            chosen = _wanted(text, stored, names)
            if nested:
                file_trees.check_nesting(chosen)
            for name in chosen:
                _check_dtype(name, header.entries[name].code)
            loaded = {}
            for name in chosen:
                array = _read(text, header.entries[name], file)
                loaded[name] = convert(
                    context, array, None, f"load: {quoted(name)}", device=device, copy=None
                )
    except UnreadableError as error:
        raise FileFormatError(f"load: {text} is not a valid safetensors file: {error}") from error
    if like is not None:
        return file_trees.like(like, loaded, record, text)
    return file_trees.nested(loaded, record) if nested else loaded


def _read(path: str, entry: file_format.Entry, file: FileIO) -> np.ndarray[Any, Any]:
    """Return the elements of an entry.

    Raises:
        BackendMemoryError: the host has no room. A sparse file claims terabytes on a small disk.

    """
    size = entry.end - entry.start
    room = _available_bytes() if size > _LARGE else None
    try:
        if room is not None and size > room:  # the system may promise more, and then kill us
            raise MemoryError
        return entry.read(file)
    except MemoryError as error:
        type_ = TensorType(DTYPES[entry.code], entry.shape)
        available = "" if room is None else f", of which {room} bytes are available"
        raise BackendMemoryError(
            f"load: {quoted(entry.name)} in {path} is {type_}, {size} bytes: the host does not "
            f"have so much memory{available}"
        ) from error


def _available_bytes() -> int | None:
    """Return how much memory the system can still give away; None if it does not tell."""
    try:
        text = Path("/proc/meminfo").read_text("ascii")
    except (OSError, ValueError):  # not Linux
        return None
    sizes = dict(re.findall(r"^(MemAvailable|SwapFree): +([0-9]+) kB$", text, re.MULTILINE))
    return sum(map(int, sizes.values())) * 1024 if "MemAvailable" in sizes else None


def _names_of(
    path: object, like: Any, stored: list[str], names: Iterable[str] | None, *, nested: bool | None
) -> list[str]:
    """Return the names of the leaves of ``like``, which must be those in the file."""
    if nested or names is not None:
        raise ArgumentError("load: with like, neither names nor nested can be passed")
    chosen = file_trees.names_of(like)
    extra = sorted(set(stored) - set(chosen))
    if extra:
        raise ArgumentError(
            f"load: {path} has {quoted(extra[0])}"
            + (f" and {len(extra) - 1} more" if len(extra) > 1 else "")
            + ", which like does not have"
        )
    return chosen


def _wanted(path: object, stored: list[str], names: Iterable[str] | None) -> list[str]:
    if names is None:
        return stored
    if isinstance(names, str):
        raise ArgumentError(f"load: names must be a list such as [{names!r}], got {quoted(names)}")
    chosen = list(names)
    known = set(stored)
    for name in chosen:
        if name not in known:
            listed = ", ".join(map(quoted, stored[:8])) + (", ..." if len(stored) > 8 else "")
            raise ArgumentError(
                f"load: {path} has no {quoted(name)}; it has {listed or 'nothing'}"
            )
    return chosen


def _check_dtype(name: str, code: str) -> None:
    if code not in DTYPES:
        raise DTypeError(
            f"load: {quoted(name)} is {code}, which is not supported; supported are "
            f"{', '.join(CODES)}. Convert it, or omit it with names=[...]"
        )
