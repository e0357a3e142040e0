"""The library of C, read by its own header; nothing here is to be changed with the device."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from cffi import FFI
from tensorplug.plugin import (
    BackendMemoryError,
    BackendUnavailableError,
    DeviceError,
    DeviceFaultError,
    DeviceLostError,
    DeviceTimeoutError,
    DType,
    KernelRefusedError,
    OutOfRangeError,
)
from tensorplug.plugin import dtypes as dt

import tensorplug_acme

NAME: Final = "acme"
VARIABLE: Final = "ACME_LIBRARY"  # the path of another build


def _find(name: str) -> Path:
    """Return a file of the package; an editable install has what was built in another folder."""
    for folder in tensorplug_acme.__path__:
        if (path := Path(folder, name)).is_file():
            return path
    raise BackendUnavailableError(f"{NAME}: {name} is missing; build it with: pip install .")


def _declarations() -> str:
    """Return the header without what is for the preprocessor."""
    text = _find("tensorplug.h").read_text("utf-8")
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    return re.sub(r"^#.*", "", text, flags=re.MULTILINE)


ffi: Final = FFI()
ffi.cdef(_declarations())
# Its threads may still run at exit, so it stays in memory when Python drops it.
lib: Final[Any] = ffi.dlopen(
    os.environ.get(VARIABLE) or str(_find("libdevice.so")), ffi.RTLD_NOW | ffi.RTLD_NODELETE
)
if lib.tp_version() != lib.TP_VERSION:
    raise BackendUnavailableError(
        f"{NAME}: the library was built with version {lib.tp_version()} of tensorplug.h, and this "
        f"package has version {lib.TP_VERSION}"
    )

ERRORS: Final[dict[int, type[Exception]]] = {
    lib.TP_UNAVAILABLE: BackendUnavailableError,
    lib.TP_OUT_OF_MEMORY: BackendMemoryError,
    lib.TP_OUT_OF_RANGE: OutOfRangeError,
    lib.TP_UNSUPPORTED: KernelRefusedError,
    lib.TP_FAULT: DeviceFaultError,
    lib.TP_LOST: DeviceLostError,
    lib.TP_TIMEOUT: DeviceTimeoutError,
}
_KINDS: Final = {
    lib.TP_INT: "int",
    lib.TP_UINT: "uint",
    lib.TP_FLOAT: "float",
    lib.TP_BFLOAT: "bfloat",
    lib.TP_COMPLEX: "complex",
}


def message() -> str:
    """Return what was wrong in the last call of this thread."""
    return f"{NAME}: {ffi.string(lib.tp_message()).decode()}"


def check(status: int) -> None:
    """Raise the error of a status that is not TP_OK."""
    if status:
        error = ERRORS[status](message())
        if isinstance(error, DeviceError):
            error.op = ffi.string(lib.tp_failed_kernel()).decode()
        raise error


def _read_dtypes() -> dict[DType, tuple[int, int, int]]:
    found, row = {}, lib.tp_dtypes()
    while row.bits:
        name = "bool" if row.code == lib.TP_BOOL else f"{_KINDS[row.code]}{row.bits}"
        found[dt.of(name)] = row.code, row.bits, row.lanes
        row += 1
    return found


DTYPES: Final = _read_dtypes()
