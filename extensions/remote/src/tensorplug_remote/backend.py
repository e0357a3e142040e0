"""The backend object: buffers are numbers of tensors that the server holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import BackendMemoryError, KernelRefusedError, KernelSpec, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_remote import values
from tensorplug_remote.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tensorplug.plugin import DType
    from tensorplug_remote.settings import Address

Array = np.ndarray[Any, Any]


class Remote:
    """A tensor on the server, by its number. When it goes, the server hears of it."""

    __slots__ = ("__weakref__", "backend", "number", "type")

    def __init__(self, backend: RemoteBackend, type_: TensorType) -> None:
        self.backend, self.type = backend, type_
        self.number = backend.connection.new_number()
        if type_.nbytes > 0:  # also not of unknown size
            backend.live[self.number] = type_.nbytes

    def __del__(self) -> None:
        self.backend.live.pop(self.number, None)
        self.backend.connection.dead.append(self.number)


class RemoteBackend:
    """One device of one server.

    Raises:
        BackendUnavailableError: nobody answers there, or one side does not want the other.

    """

    name = "remote"

    def __init__(self, address: Address) -> None:
        self.connection = Connection(address)
        about = self.connection.about
        self.device = f"{about['device']}, at {address}"
        self.dtypes = _dtypes(about["dtypes"])
        self.kernels = {name: _dtypes(names) for name, names in about["kernels"].items()}
        self.widens = _dtypes(about["widens"])
        self.flushes_subnormals = _dtypes(about["flushes"])
        self.largest_buffer = int(about["largest"])
        self.live: dict[int, int] = {}

    def from_host(self, array: Array) -> Remote:
        """Send a copy of ``array``.

        Raises:
            BackendMemoryError: it is larger than a message may be. If the server has no room,
                that is raised where the tensor is read.

        """
        buffer = self.new(TensorType(dt.of(array.dtype), array.shape))
        # As bytes, since the standard library knows no bfloat16.
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.connection.submit(
            f"sending {buffer.type}",
            "upload",
            buffer.number,
            values.encode_type(buffer.type),
            payload=data,
        )
        return buffer

    def to_host(self, buffer: Remote) -> Array:
        """Wait for the contents.

        Raises:
            TensorplugError: what made them failed; the error names it.

        """
        _, data = self.connection.ask(f"reading {buffer.type}", "read", buffer.number)
        return np.frombuffer(data, buffer.type.dtype.numpy).reshape(buffer.type.shape)

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is one of this backend."""
        if not isinstance(buffer, Remote):
            raise TypeError(f"{type(buffer).__name__} is no tensor on a server")
        return buffer.type

    def allocation(self, buffer: Remote) -> tuple[Hashable, int]:
        """Return the number and the bytes; what the server shares is not known here."""
        return buffer.number, buffer.type.nbytes

    def synchronize(self) -> None:
        """Wait until the server has done everything, and raise its first error not yet told."""
        self.connection.ask("synchronizing", "sync")

    def memory(self) -> Mapping[str, int]:
        """Return how many tensors this process holds there, and their bytes."""
        held = list(self.live.values())
        return {"tensors": len(held), "bytes": sum(held)}

    def live_buffers(self) -> int:
        """Return the number of tensors that this process holds."""
        return len(self.live)

    def counts(self, buffer: Remote) -> bool:
        """Return whether it is counted: not if it is empty."""
        return buffer.number in self.live

    def stop_counting(self) -> None:
        """Go on: counting costs nothing."""

    def explain_loss(self) -> str:
        """Return why the connection, or the server's device, is lost; "" while neither is."""
        return self.connection.lost or self.connection.device_lost

    def close(self) -> None:
        """End the connection; the server frees what this process had there."""
        self.connection.close()

    def new(self, type_: TensorType) -> Remote:
        """Return the number of a tensor to be.

        Raises:
            BackendMemoryError: a single tensor may not be as large.

        """
        if type_.known and type_.nbytes > self.largest_buffer:
            raise BackendMemoryError(
                f"remote: {type_} has {type_.nbytes} bytes, but a tensor on "
                f"{self.connection.address} at most {self.largest_buffer}"
            )
        return Remote(self, type_)


class Call:
    """A kernel with its attributes on the server, by a number; calling it waits for nothing."""

    __slots__ = ("_backend", "_multiple", "_number", "_outs", "_text")

    def __init__(
        self,
        backend: RemoteBackend,
        spec: KernelSpec,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
        outs: Sequence[TensorType],
    ) -> None:
        try:
            encoded = {name: values.encode(value) for name, value in attributes.items()}
        except TypeError as error:
            raise KernelRefusedError(str(error)) from error
        self._backend, self._outs, self._multiple = backend, outs, spec.multiple_outputs
        self._text = spec.describe(types)
        self._number = backend.connection.new_number()
        fields = [values.encode_type(type_) for type_ in outs]
        backend.connection.submit(
            f"preparing {self._text}", "plan", self._number, spec.name, encoded, fields, self._text
        )

    def __call__(self, *inputs: Any) -> Any:
        """Submit the call; return the tensors that it will make."""
        connection = self._backend.connection
        made = [self._backend.new(type_) for type_ in self._outs]
        numbers = [_numbers(each) for each in inputs]
        connection.submit(
            self._text, "call", self._number, numbers, [each.number for each in made]
        )
        if not all(type_.known for type_ in self._outs):
            self._learn(made)
        return made if self._multiple else made[0]

    def _learn(self, made: list[Remote]) -> None:
        """Wait for sizes that depend on the data."""
        numbers = [each.number for each in made]
        types, _ = self._backend.connection.ask(self._text, "types", numbers)
        for each, type_ in zip(made, types, strict=True):
            each.type = values.decode_type(type_)
            if each.type.nbytes:
                self._backend.live[each.number] = each.type.nbytes

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._backend.connection.dead.append(self._number)


def _numbers(buffers: Any) -> Any:
    if buffers is None:
        return None
    return [_numbers(each) for each in buffers] if isinstance(buffers, list) else buffers.number


def _dtypes(names: Sequence[str]) -> frozenset[DType]:
    return frozenset(values.decode_dtype(name) for name in names)
