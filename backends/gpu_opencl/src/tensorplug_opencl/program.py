"""Programs: built once per source text and context, kept on disk as binaries."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, Final

import pyopencl as cl

from tensorplug_opencl import faults
from tensorplug_opencl.binaries import Binaries

__all__ = ["ENTRY", "Programs", "title_of"]

ENTRY: Final = "run"  # the name of the one kernel in each program


def title_of(source: str) -> str:
    """Return what a program calls itself, in the comment of its first line."""
    return source.partition("\n")[0].removeprefix("// ")


class Programs:
    """The programs built for one context, by source text.

    The options never loosen arithmetic; where the device offers correctly rounded float
    division and square root (OpenCL allows 2.5 and 3 ulp otherwise), they ask for them.
    """

    def __init__(self, context: cl.Context, device: cl.Device, name: str) -> None:
        self._context = context
        self._device = device
        self._name = name
        self._options = ["-cl-std=CL1.2", "-w"]  # warnings would be shown to every user
        if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            self._options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        self._binaries = Binaries(device, self._options)
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
                program = self._built[source] = self._load(source) or self._build(source)
        try:
            # One of its own for each call; cl.Kernel would also generate code that calls it.
            return next(iter(program.all_kernels()))
        except cl.Error as error:
            raise faults.translated(error, self._name, "creating a kernel") from error

    def _load(self, source: str) -> cl.Program | None:
        """Return the program from its binary on disk; None where there is none of use."""
        if os.environ.get("PYOPENCL_COMPILER_OUTPUT"):
            return None  # whoever wants to see the compiler's logs needs the compiler
        binary = self._binaries.find(source)
        if binary is None:
            return None
        try:
            program = cl.Program(self._context, [self._device], [binary])
            self._finish(program)
        except cl.Error as error:
            if faults.is_lost(error) or faults.is_memory(error):
                raise faults.translated(error, self._name, "loading a program") from error
            self._binaries.forget(source)  # of another driver, or broken: it is built anew
            return None
        return program

    def _finish(self, program: cl.Program) -> None:
        """Let the driver build ``program``.

        Some drivers write a log even where nothing is wrong, and pyopencl then warns that there
        is one. Who sets PYOPENCL_COMPILER_OUTPUT gets another text, the log itself.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Non-empty compiler output", category=cl.CompilerWarning
            )
            program.build(self._options)

    def _build(self, source: str) -> cl.Program:
        try:
            program = cl.Program(self._context, source)
            self._finish(program)
        except cl.Error as error:
            if error.code in (
                cl.status_code.BUILD_PROGRAM_FAILURE,
                cl.status_code.COMPILE_PROGRAM_FAILURE,
                cl.status_code.LINK_PROGRAM_FAILURE,
            ):
                raise faults.build_failure(error, self._name, title_of(source)) from error
            raise faults.translated(error, self._name, "building a program") from error
        binaries: Any = program.get_info(cl.program_info.BINARIES)
        self._binaries.keep(source, binaries[0])
        return program
