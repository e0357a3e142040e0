"""Named tensors in files of the safetensors format. Nothing is ever pickled or unpickled.

A file is flat: names and tensors. Nested dicts are joined into names by dots, where the dots
tell them apart again.
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

_CODES: Final = {  # the format's names of our dtypes
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

    The file appears under its name when it is complete; until then one that was there before
    stays as it is.

    Args:
        tensors: by name; what ``asarray`` takes will do for a tensor. Nested dicts are joined:
            ``{"a": {"b": x}}`` is saved as ``"a.b"``. Tensors on the tape are constants here.
        path: of the file. The format's usual ending is ``.safetensors``.
        metadata: text by name, kept in the file's header; ``safetensors.safe_open`` reads it.

    Raises:
        DTypeError: a tensor is complex128 or text, which the format does not have.
        ArgumentError: names or metadata are no text; a nested dict is empty or a name in one
            holds a dot, so that loading could not give it back; ``path`` is no plain file.
        DisposedError: a tensor's data is gone.
        PackageNotInstalledError: ``safetensors`` is not installed.
        OSError: the file cannot be written.

    """
    package = _package("save")
    arrays = {name: _dense(name, value) for name, value in _flat(tensors)}
    text = _checked(metadata)
    target = Path(os.path.realpath(path))  # where a link leads, so that the link stays
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise ArgumentError(f"save: {target} is no plain file")
    scratch = target.with_name(f".tensorplug-{secrets.token_hex(8)}.tmp")
    scratch.open("xb").close()  # in the same folder, with the rights of a new file
    try:
        rights = stat.S_IMODE((target if target.is_file() else scratch).stat().st_mode)
        try:
            package.numpy.save_file(arrays, scratch, metadata=text)
        except package.SafetensorError as error:  # what can be wrong with the call, was checked
            raise OSError(f"save: {target} could not be written: {error}") from error
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())  # the name must not survive a power cut without the data
        scratch.chmod(rights)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _flat(tensors: object) -> Iterator[tuple[str, Any]]:
    """Yield names and values, in order."""
    if not isinstance(tensors, Mapping):
        raise ArgumentError(f"save: needs a dict of tensors by name, got {type(tensors).__name__}")
    nested = any(isinstance(value, Mapping) for value in tensors.values())
    yield from _joined("", tensors, nested=nested)


def _joined(outer: str, tensors: Mapping[Any, Any], *, nested: bool) -> Iterator[tuple[str, Any]]:
    for name, value in tensors.items():
        where = f"save: name {name!r}" + (f" in {outer!r}" if outer else "")
        if not isinstance(name, str) or not name or name == _RESERVED or not _encodes(name):
            raise ArgumentError(f"{where}: a name is text, not empty and not {_RESERVED!r}")
        if nested and "." in name:
            raise ArgumentError(
                f"{where}: nested dicts are joined by dots, so that a dot in a name could not be "
                "told from those; rename it, or flatten the dict yourself"
            )
        full = f"{outer}.{name}" if outer else name
        if not isinstance(value, Mapping):
            yield full, value
        elif value:
            yield from _joined(full, value, nested=nested)
        else:
            raise ArgumentError(f"{where}: an empty dict leaves nothing in a file; leave it out")


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair is no character
        return False
    return True


def _dense(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return the elements in row-major order, as the format has them."""
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
            f"save: {name!r} is {type_}, but safetensors has no {type_.dtype}; {instead}"
        )
    return np.asarray(array, order="C")


def _checked(metadata: object) -> dict[str, str] | None:
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise ArgumentError(f"save: metadata is a dict of texts, not {type(metadata).__name__}")
    texts = dict(metadata)
    for key in (*texts.keys(), *texts.values()):
        if not isinstance(key, str) or not _encodes(key):
            raise ArgumentError(f"save: metadata is text by name, and {key!r} is none")
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
        path: of the file, whoever wrote it.
        names: which ones to read, in this order; all by default.
        device: where the tensors are to be, such as ``"opencl"``; the active one by default.
        nested: split the names at their dots into nested dicts, as ``save`` has joined them.

    Raises:
        FileFormatError: the file is truncated, corrupt, or of another format.
        DTypeError: a tensor is of a dtype that tensors, or the device's, do not have (bfloat16,
            the float8 family); ``names`` may leave it out.
        ArgumentError: the file has no tensor of one of ``names``; with ``nested``, a name is
            also the beginning of another one.
        PackageNotInstalledError: ``safetensors`` is not installed.
        OSError: the file cannot be read. Besides, what ``use_backend`` raises for ``device``.

    """
    package = _package("load")
    Path(path).open("rb").close()  # its errors say more than the package's
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
        raise FileFormatError(f"load: {path} is no sound safetensors file: {error}") from error
    return _split(loaded) if nested else loaded


class _UnreadableError(Exception):
    """NumPy refuses what the header says."""


def _read(file: Any, name: str) -> np.ndarray[Any, Any]:
    """Return one entry, in memory of its own."""
    try:
        array: np.ndarray[Any, Any] = file.get_tensor(name)
    except ValueError as error:  # a size beyond NumPy's, beside a 0; too many dimensions
        raise _UnreadableError(f"{name!r}: {error}") from error
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise _UnreadableError(f"{name!r} is bool, but has bytes other than 0 and 1")
    return array


def _wanted(path: object, found: list[str], names: Iterable[str] | None) -> list[str]:
    if names is None:
        return found
    if isinstance(names, str):
        raise ArgumentError(f"load: names are a list; for one name give [{names!r}]")
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
        for end, item in enumerate(name):
            if item == "." and name[:end] in known:
                raise ArgumentError(
                    f"load: {name[:end]!r} cannot be a tensor beside {name!r} in nested dicts; "
                    "load without nested=True"
                )


def _check_dtype(name: str, code: str) -> None:
    if code not in _CODES:
        raise DTypeError(
            f"load: {name!r} is {code} in the file, which tensors do not have; they have "
            f"{', '.join(_CODES)}. Convert it, or leave it out by giving names=[...]"
        )


def _split(flat: Mapping[str, Tensor]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, tensor in flat.items():
        *outer, last = name.split(".")
        level = tree
        for item in outer:
            level = level.setdefault(item, {})
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
