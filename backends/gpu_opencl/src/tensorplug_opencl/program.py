"""Programs: built once per source text and context."""

from __future__ import annotations

import threading
import warnings
from typing import Final

import pyopencl as cl

from tensorplug_opencl import faults

__all__ = ["ENTRY", "Programs", "title_of"]

ENTRY: Final = "run"  # the name of the one kernel in each program


def title_of(source: str) -> str:
    """Return what a program calls itself, in the comment of its first line."""
    return source.partition("\n")[0].removeprefix("// ")


class Programs:
    """The programs built for one context, by source text. pyopencl keeps binaries on disk too.

    The options never loosen arithmetic; where the device offers correctly rounded float
    division and square root (OpenCL allows 2.5 and 3 ulp otherwise), they ask for them.
    """

    def __init__(self, context: cl.Context, device: cl.Device, name: str) -> None:
        self._context = context
        self._name = name
        self._options = ["-cl-std=CL1.2", "-w"]  # warnings would be shown to every user
        if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            self._options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        self._built: dict[str, cl.Program] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._built)

    def kernel(self, source: str) -> cl.Kernel:
        """Return a new kernel object for the kernel ``run`` of ``source``.

        Raises:
            BuildError: when the program does not build, with the compiler's log.
            DeviceLostError, BackendMemoryError: as the code says.

        """
        with self._lock:
            program = self._built.get(source)
            if program is None:
                program = self._built[source] = self._build(source)
        try:
            return cl.Kernel(program, ENTRY)
        except cl.Error as error:
            raise faults.translated(error, self._name, "creating a kernel") from error

    def _build(self, source: str) -> cl.Program:
        try:
            # Some drivers write a log even where nothing is wrong, and pyopencl then warns that
            # there is one. Who sets PYOPENCL_COMPILER_OUTPUT gets another text, the log itself.
            with warnings.catch_warnings():
                warnings.filterwarnings(
                    "ignore", "Non-empty compiler output", category=cl.CompilerWarning
                )
                program: cl.Program = cl.Program(self._context, source).build(self._options)
        except cl.Error as error:
            if error.code in (
                cl.status_code.BUILD_PROGRAM_FAILURE,
                cl.status_code.COMPILE_PROGRAM_FAILURE,
                cl.status_code.LINK_PROGRAM_FAILURE,
            ):
                raise faults.build_failure(error, self._name, title_of(source)) from error
            raise faults.translated(error, self._name, "building a program") from error
        return program
