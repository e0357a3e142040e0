"""Named tensors in files of the safetensors format. Nothing is pickled or unpickled.

A file maps names to tensors. The keys of nested dicts are joined by dots.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    FileFormatError,
    PackageNotInstalledError,
    TensorplugError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["load", "save"]

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
_RESERVED: Final = "__metadata__"


# Saving ---------------------------------------------------------------------------------


def save(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write named tensors to a file in the safetensors format.

    The file replaces an old one only when it is complete.

    Args:
        tensors: tensors, or anything ``asarray`` accepts, by name. Nested dicts are joined:
            ``{"a": {"b": x}}`` is saved as ``"a.b"``. Gradients are not recorded.
        path: of the file. The usual extension is ``.safetensors``.
        metadata: text by name, stored in the file's header; ``safetensors.safe_open`` reads it.

    Raises:
        DTypeError: a tensor is complex128 or string, which the format does not support.
        ArgumentError: names or metadata are not text; a nested dict is empty or one of its names
            contains a dot, so that loading could not restore it; ``path`` is not a regular file.
        DisposedError: a tensor was disposed.
        PackageNotInstalledError: ``safetensors`` is not installed.
        OSError: the file cannot be written.

    """
    package = _package("save")
    arrays = {name: _dense(name, value) for name, value in _flat(tensors)}
    text = _checked(metadata)
    target = Path(os.path.realpath(path))  # keeps a symbolic link
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise ArgumentError(f"save: {target} is not a regular file")
    scratch = target.with_name(f".tensorplug-{secrets.token_hex(8)}.tmp")
    scratch.open("xb").close()  # in the same folder, with the permissions of a new file
    try:
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


def _flat(tensors: object) -> Iterator[tuple[str, Any]]:
    """Yield names and values, in order."""
    if not isinstance(tensors, Mapping):
        raise ArgumentError(
            f"save: tensors must be a dict of tensors by name, got {type(tensors).__name__}"
        )
    nested = any(isinstance(value, Mapping) for value in tensors.values())
    yield from _joined("", tensors, nested=nested)


def _joined(outer: str, tensors: Mapping[Any, Any], *, nested: bool) -> Iterator[tuple[str, Any]]:
    for name, value in tensors.items():
        where = f"save: name {name!r}" + (f" in {outer!r}" if outer else "")
        if not isinstance(name, str) or not name or name == _RESERVED or not _encodes(name):
            raise ArgumentError(
                f"{where}: a name must be text that is not empty and not {_RESERVED!r}"
            )
        if nested and "." in name:
            raise ArgumentError(
                f"{where}: the names of nested dicts must not contain dots, which join them; "
                "rename it, or flatten the dict yourself"
            )
        full = f"{outer}.{name}" if outer else name
        if not isinstance(value, Mapping):
            yield full, value
        elif value:
            yield from _joined(full, value, nested=nested)
        else:
            raise ArgumentError(f"{where}: an empty dict cannot be saved; omit it")


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _dense(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return the elements in row-major order, which the format requires."""
    try:
        array = host_values.as_array(value)
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
        if not isinstance(text, str) or not _encodes(text):
            raise ArgumentError(f"save: metadata must be text by name, but contains {text!r}")
    return texts


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
) -> dict[str, Any]: ...
def load(
    path: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    device: str | None = None,
    nested: bool = False,
) -> dict[str, Any]:
    """Return the tensors of a file in the safetensors format, by name.

    Args:
        path: of the file.
        names: of the tensors to read, in this order; all by default.
        device: of the tensors, such as ``"opencl"``; the active one by default.
        nested: split the names at dots into nested dicts, the inverse of ``save``.

    Raises:
        FileFormatError: the file is truncated, corrupt, or of another format.
        DTypeError: tensorplug or the device does not support the dtype of a tensor (bfloat16, the
            float8 family); omit it with ``names``.
        ArgumentError: the file has no tensor of one of ``names``; with ``nested``, a name is
            also a prefix of another one.
        PackageNotInstalledError: ``safetensors`` is not installed.
        OSError: the file cannot be read. ``device`` may also raise the errors of ``use_backend``.

    """
    package = _package("load")
    Path(path).open("rb").close()  # its errors are more precise than the package's
    context = current_context()
    convert = engine_of(context).convert
    try:
        with package.safe_open(path, framework="numpy") as file:
            wanted = _wanted(path, list(file.keys()), names)
            if nested:
                _check_nesting(wanted)
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
    return _split(loaded) if nested else loaded


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


def _check_nesting(names: Iterable[str]) -> None:
    known = set(names)
    for name in known:
        for end, character in enumerate(name):
            if character == "." and name[:end] in known:
                raise ArgumentError(
                    f"load: nested dicts cannot contain both {name[:end]!r} and {name!r}; load "
                    "without nested=True"
                )


def _check_dtype(name: str, code: str) -> None:
    if code not in _CODES:
        raise DTypeError(
            f"load: {name!r} is {code}, which is not supported; supported are "
            f"{', '.join(_CODES)}. Convert it, or omit it with names=[...]"
        )


def _split(flat: Mapping[str, Tensor]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, tensor in flat.items():
        *outer, last = name.split(".")
        level = tree
        for part in outer:
            level = level.setdefault(part, {})
        level[last] = tensor
    return tree


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
