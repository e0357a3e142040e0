"""Programs: built once per source text and context, kept on disk as binaries.

A program that has never run to completion on this machine may crash its driver. So ``attempts``
notes when a program is built and when it first runs. Even in the process that compiles a program,
the program is loaded from its binary before it runs; the binary is kept after that run. (This also
saves memory: Intel's driver holds 5 MB for a compiled program and 0.5 MB for a loaded one.)
"""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyopencl as cl

from tensorplug.plugin import BackendWarning, BuildNotice, KernelRefusedError, warn
from tensorplug_opencl import faults
from tensorplug_opencl.machine import attempts
from tensorplug_opencl.machine.settings import TRIAL
from tensorplug_opencl.programs import invokers
from tensorplug_opencl.programs.binaries import Binaries
from tensorplug_opencl.programs.kernel_objects import KernelObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_opencl.machine.attempts import Fatal, Story
    from tensorplug_opencl.programs.kernel_objects import Holder

    Build = Callable[[str, str, Story], bytes | None]

_NOTICE: Final = BuildNotice("opencl", "programs")
ENTRY: Final = "run"  # the name of the one kernel in each program
MOST_KEPT: Final = 512  # programs in memory; Intel's driver takes 0.6 MB for each


def read_title(source: str) -> str:
    """Return the title of a program, which is the comment in its first line."""
    return source.partition("\n")[0].removeprefix("// ")


def choose_options(device: cl.Device) -> list[str]:
    """Return the compiler's options, none of which relaxes arithmetic.

    They ask for correctly rounded float division and square root if the device has them
    (OpenCL otherwise allows 2.5 and 3 ulp).
    """
    options = ["-cl-std=CL1.2", "-w"]  # warnings would be shown to every user
    if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    return options


def build(program: cl.Program, options: list[str]) -> None:
    """Let the driver build ``program``.

    Some drivers write a log even if nothing is wrong, and pyopencl then warns that there is
    one. With PYOPENCL_COMPILER_OUTPUT set, pyopencl shows the log itself, in another warning.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Non-empty compiler output", category=cl.CompilerWarning)
        # pyopencl's own cache would keep programs that were never checked.
        program.build(options, cache_dir=False)  # type: ignore[arg-type]  # documented so


def read_binary(program: cl.Program) -> bytes:
    """Return the binary of ``program`` for its one device."""
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    return bytes(binaries[0])


def _released_once(kernel: cl.Kernel) -> cl.Kernel:
    """Return a new kernel whose last reference is this object's.

    pyopencl (2026.1) retains kernels of ``all_kernels`` once more than it releases them, and each
    of them keeps its program and context alive.
    """
    count: Any = kernel.get_info(cl.kernel_info.REFERENCE_COUNT)
    if count > 1:
        cl.Kernel.from_int_ptr(kernel.int_ptr, False)  # noqa: FBT003  # takes one, and dies
    return kernel


def has_kernel(program: cl.Program) -> bool:
    """Return whether the driver finds the kernel ``ENTRY`` in a program that it has built."""
    try:
        names: Any = program.get_info(cl.program_info.KERNEL_NAMES)
    except cl.Error as error:
        if error.code == cl.status_code.INVALID_PROGRAM_EXECUTABLE:
            return False  # some drivers' code for a program without kernels
        raise
    return ENTRY in names.split(";")


class _Built(NamedTuple):
    """A program in memory, its text, and its kernel objects."""

    source: str
    program: cl.Program
    objects: KernelObjects


class Programs:
    """The programs built for one context, by source text; of many, the last ones built.

    A program that has made room for others is built or loaded again when a launch needs it.

    ``keeps``: whether the driver's trial has found that its binaries can be loaded again.
    ``elsewhere``: builds them in another process, as long as there is one.
    """

    def __init__(
        self,
        context: cl.Context,
        device: cl.Device,
        health: faults.Health,
        *,
        keeps: bool = True,
        elsewhere: Build | None = None,
    ) -> None:
        invokers.keep_in_memory()
        self._context = context
        self._device = device
        self._health, self._name = health, health.name
        self._options = choose_options(device)
        self._keeps = keeps
        self._build_elsewhere = elsewhere
        self._binaries = Binaries(device, self._options)
        self._built: dict[str, _Built] = {}
        # Built here, and not run to completion yet: the binary, if it is usable.
        self._untried: dict[str, bytes | None] = {}
        self._lethal: dict[str, str] = {}  # why programs are skipped
        # Re-entrant: signal handlers and finalizers may need programs during a build.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._built)

    def __contains__(self, source: str) -> bool:
        return source in self._built

    def kernel(self, source: str) -> cl.Kernel:
        """Return a new kernel object for the kernel ``run`` of ``source``.

        Raises:
            BuildError: when the program does not build, with the compiler's log.
            KernelRefusedError: when the program crashed an earlier process.
            DeviceLostError, BackendMemoryError: as OpenCL's error code says.

        """
        program = self._find(source).program
        try:
            # A new one for each call; cl.Kernel would also generate code that calls it.
            return _released_once(next(iter(program.all_kernels())))
        except cl.Error as error:
            raise self._health.translate(error, "creating a kernel") from error

    def lend(self, holder: Holder, source: str) -> cl.Kernel:
        """Return a kernel object for ``holder`` alone: a new one, or another holder's idle one.

        Raises: as ``kernel``.
        """
        _NOTICE.using(source)
        objects = self._find(source).objects
        kernel = objects.reclaim(holder)
        if kernel is not None:
            return kernel
        try:
            return self.kernel(source)
        except BaseException:
            objects.forget(holder)
            raise

    def count_arguments(self, source: str, kernel: cl.Kernel) -> int:
        """Return how many arguments a program's kernel takes."""
        objects = self._find(source).objects
        objects.arguments = objects.arguments or kernel.num_args
        return objects.arguments

    def find_groups(self, source: str) -> dict[tuple[int, int | None], int]:
        """Return the sizes of groups that launches of a program have chosen, and add to."""
        return self._find(source).objects.groups

    def share_text(self, source: str) -> str:
        """Return the one copy of ``source``, which all launches of the program keep."""
        return self._find(source).source

    def _find(self, source: str) -> _Built:
        return self._built.get(source) or self._provide(source)

    def _provide(self, source: str) -> _Built:
        """Load or build the program ``source``, unless another thread has just done so."""
        with self._lock:
            built = self._built.get(source)
            if built is None:
                program = self._load(source) or self._attempt(source)
                # A program that was built meanwhile, in this thread, has kernels already.
                built = self._built.setdefault(source, _Built(source, program, KernelObjects()))
                while len(self._built) > MOST_KEPT:
                    self._drop(next(iter(self._built)))
        return built

    def _drop(self, source: str) -> None:
        """Forget a program; its kernel objects, which keep it alive, go as well."""
        built = self._built.pop(source)
        self._untried.pop(source, None)
        built.objects.release()

    def is_untried(self, source: str) -> bool:
        """Return whether ``source`` has never run to completion yet, in any process."""
        return source in self._untried

    @contextmanager
    def first_run(self, source: str) -> Iterator[None]:
        """Run ``source`` for the first time, to completion, in the ``with`` block."""
        with attempts.attempting(self._binaries.key(source), **self._make_story(source, "run")):
            yield
        with self._lock:
            binary = self._untried.pop(source, None)
        if binary is not None:
            self._binaries.keep(source, binary)

    def _make_story(self, source: str, step: str) -> Story:
        return {"program": read_title(source), "device": self._name, "step": step}

    def _load(self, source: str) -> cl.Program | None:
        """Return the program from its binary on disk; None if there is no usable binary."""
        if not self._uses_binaries():
            return None
        binary = self._binaries.find(source)
        if binary is None:
            return None
        program = self._load_binary(binary)
        if program is None:
            self._binaries.forget(source)  # another driver's, or broken: it is built again
        return program

    def _uses_binaries(self) -> bool:
        """Return whether to load programs; only compiling them would show the compiler's log."""
        return self._keeps and not os.environ.get("PYOPENCL_COMPILER_OUTPUT")

    def _load_binary(self, binary: bytes) -> cl.Program | None:
        """Return the program that the driver loads from ``binary``; None if it cannot."""
        try:
            program = cl.Program(self._context, [self._device], [binary])
            build(program, self._options)
            return program if has_kernel(program) else None
        except cl.Error as error:
            if faults.is_lost(error) or faults.is_memory(error):
                raise self._health.translate(error, "loading a program") from error
            return None

    def _attempt(self, source: str) -> cl.Program:
        """Build and return the program, unless it crashed an earlier process."""
        key = self._binaries.key(source)
        self._check_lethal(key, source)
        kept = self._uses_binaries() and self._binaries.has_folder
        story = self._make_story(source, "build")
        with _NOTICE.building(kept=kept):
            binary, loaded = self._load_from_elsewhere(key, source, story)
            if loaded is None:
                with attempts.attempting(key, **story):
                    built = self._build(source)
                    binary = self._read_binary(built) if self._uses_binaries() else None
                    loaded = None if binary is None else self._load_binary(binary)
        self._untried[source] = None if loaded is None else binary
        return loaded or built

    def _check_lethal(self, key: str, source: str) -> None:
        if source not in self._lethal:
            fatal = attempts.find_fatal(key)
            if fatal is not None:
                self._lethal[source] = self._warn(source, fatal)
        if source in self._lethal:
            raise KernelRefusedError(self._lethal[source])

    def _load_from_elsewhere(
        self, key: str, source: str, story: Story
    ) -> tuple[bytes | None, cl.Program | None]:
        """Return a program that another process builds, and its binary, if there is one."""
        if self._build_elsewhere is None or not self._uses_binaries():
            return None, None
        binary = self._build_elsewhere(source, key, story)
        if binary is None:
            self._check_lethal(key, source)  # it may have died of it
            return None, None
        return binary, self._load_binary(binary)

    def _warn(self, source: str, fatal: Fatal) -> str:
        """Warn that a program is skipped, and return why."""
        building = fatal.story.get("step") == "build"
        step = "was being built" if building else "ran for the first time"
        reason = f"an earlier process died while program {read_title(source)!r} {step}"
        warn(
            f"{reason} on {self._name}. The backend skips this program and computes the op in "
            f"another way. To try the program again, delete {fatal.file}, or set {TRIAL}=again "
            "once",
            BackendWarning,
            within=("tensorplug_opencl", "tensorplug_loops"),
        )
        return f"{reason} (to try it again, set {TRIAL}=again once)"

    def _build(self, source: str) -> cl.Program:
        try:
            program = cl.Program(self._context, source)
            build(program, self._options)
            usable = has_kernel(program)
        except cl.Error as error:
            if error.code in (
                cl.status_code.BUILD_PROGRAM_FAILURE,
                cl.status_code.COMPILE_PROGRAM_FAILURE,
                cl.status_code.LINK_PROGRAM_FAILURE,
            ):
                platform = self._device.platform.name.strip()
                raise faults.explain_build_failure(
                    error, self._name, read_title(source), platform
                ) from error
            raise self._health.translate(error, "building a program") from error
        if not usable:
            raise faults.explain_missing_kernel(self._device, self._name, read_title(source))
        return program

    def _read_binary(self, program: cl.Program) -> bytes | None:
        """Return the binary of ``program``; None if the driver has no binaries."""
        try:
            return read_binary(program)
        except cl.Error as error:
            if faults.is_lost(error):
                raise self._health.translate(error, "asking for a binary") from error
            return None
