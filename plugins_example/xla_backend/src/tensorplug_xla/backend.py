"""The backend object: a device of JAX, whose arrays are the buffers, and XLA, its compiler."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import jax
import jaxlib
import numpy as np
from jax.experimental import serialize_executable

from tensorplug.plugin import BackendMemoryError, KernelRefusedError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_xla.formulas import FORMULAS, Function
from tensorplug_xla.lowering import compiled, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from tensorplug.plugin import programs

# Not float64: XLA flushes its subnormal numbers on processors, which no backend of tensorplug may.
DTYPES: Final = dt.BOOL | dt.INTEGER | {dt.float32}


class XLABackend:
    """The members of ``tensorplug.plugin.Backend``, and those of ``CompilesPrograms``."""

    name = "xla"
    dtypes = DTYPES
    flushes_subnormals = frozenset({dt.float32})

    def __init__(self, place: jax.Device) -> None:
        self.place = place
        self.device = f"{place.device_kind} by XLA of jaxlib {jaxlib.__version__}"
        self.compiler = f"{place.client.platform_version}, jax {jax.__version__}, formulas 1"

    # Buffers ------------------------------------------------------------------------------

    def from_host(self, array: np.ndarray[Any, Any]) -> jax.Array:
        """Return a copy; JAX would share the memory of an aligned array on the CPU."""
        try:
            with jax.enable_x64(True):  # noqa: FBT003  # of JAX
                return jax.device_put(np.array(array, order="C"), self.place)
        except (MemoryError, jax.errors.JaxRuntimeError) as error:
            raise BackendMemoryError(f"xla: {error}") from error

    def to_host(self, buffer: jax.Array) -> np.ndarray[Any, Any]:
        """Return the elements, when they are computed."""
        return np.asarray(buffer)

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is an array of JAX."""
        if not isinstance(buffer, jax.Array):
            raise TypeError(f"{type(buffer).__name__} is not an array of JAX")
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer: jax.Array) -> tuple[Hashable, int]:
        """Return the address: two arrays may share one."""
        return (buffer.unsafe_buffer_pointer() if buffer.nbytes else id(buffer)), buffer.nbytes

    def owns_memory(self, buffer: jax.Array) -> bool:
        """Return True: XLA copies memory that arrays of NumPy still show."""
        return not buffer.is_deleted()

    def synchronize(self) -> None:
        """Wait for all arrays that are alive: JAX has no queue to wait for."""
        for array in jax.live_arrays(self.place.platform):
            if not array.is_deleted():
                array.block_until_ready()

    def memory(self) -> Mapping[str, int]:
        """Return what PJRT says of the device; nothing on the CPU."""
        return {name: int(n) for name, n in (self.place.memory_stats() or {}).items()}

    def close(self) -> None:
        """Do nothing: JAX owns the device."""

    # Programs -----------------------------------------------------------------------------

    def take_calls(
        self, program: programs.TracedProgram, offered: Collection[int]
    ) -> Collection[int]:
        """Take all calls that have a formula."""
        return [at for at in offered if program.calls[at].kernel in FORMULAS]

    def compile_program(self, program: programs.TracedProgram) -> Executable:
        """Compile a part of a program by XLA."""
        arguments = (*program.constants, *program.inputs)
        types = [program.types[at] for at in arguments]
        results = Counter(program.types[at] for at in program.outputs)
        donated = []
        for at, (each, type_) in enumerate(zip(arguments, types, strict=True)):
            if each in program.donated and results[type_]:
                results[type_] -= 1  # a result takes this memory
                donated.append(at)
        return Executable(compiled(traced(program), types, self.place, donated), program)

    def load_program(self, program: programs.TracedProgram, content: bytes) -> Executable:
        """Return what another process has compiled."""
        count = len(program.constants) + len(program.inputs)
        given = jax.tree.structure(((0,) * count, {}))
        made = jax.tree.structure([0] * len(program.outputs))
        try:
            run = serialize_executable.deserialize_and_load(
                content, given, made, execution_devices=[self.place]
            )
        except (jax.errors.JaxRuntimeError, pickle.UnpicklingError, EOFError) as error:
            raise KernelRefusedError(f"XLA does not load it: {error}") from error
        return Executable(run, program)


class Executable:
    """A ``CompiledProgram``: its arguments are the constants, then the inputs."""

    def __init__(self, run: Any, program: programs.TracedProgram) -> None:
        self._run, self._program = run, program

    def bind(self, constants: Sequence[jax.Array]) -> Callable[..., Sequence[jax.Array]]:
        """Return the executable with its constants."""
        run: Callable[..., Sequence[jax.Array]] = self._run
        if not constants:
            return run
        bound = tuple(constants)
        return lambda *inputs: run(*bound, *inputs)

    def serialize(self) -> bytes:
        """Return XLA's executable, as PJRT writes it."""
        content: bytes = serialize_executable.serialize(self._run)[0]
        return content


def kernel(function: Function, types: Sequence[Any], place: jax.Device) -> Callable[..., Any]:
    """Return a kernel: a program of one call, compiled when it first runs."""
    runs: list[Callable[..., Any]] = []

    def run(*buffers: Any) -> Any:
        if not runs:
            runs.append(compiled(function, types, place))
        return runs[0](*buffers)

    return run
