"""One part of a program, which the backend has compiled as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.errors import KernelOutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.compile.tracing.values import Value
    from tensorplug.dispatch.device import Device


@dataclass(eq=False)
class Part:
    """Calls that run as one. ``members``: their places; ``places``: of inputs it may overwrite."""

    device: Device
    members: Sequence[int]
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    places: Sequence[int]
    run: Callable[..., Any]

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"a part of {len(self.members)} calls"

    def check(self, result: Any) -> None:
        """Compare the results of the first run with the types of the outputs.

        Raises:
            KernelOutputError: there are more or fewer, or one has another type.

        """
        what = f"{hook_name(self.device, 'compile_program')}: {self.name}"
        if not isinstance(result, list | tuple) or len(result) != len(self.outputs):
            got = f"{len(result)} outputs" if isinstance(result, list | tuple) else type(result)
            raise KernelOutputError(
                f"{what} returned {got} instead of a list of {len(self.outputs)} outputs"
            )
        for at, (buffer, output) in enumerate(zip(result, self.outputs, strict=True)):
            try:
                type_ = self.device.backend.describe(buffer)
            except TypeError as error:
                raise KernelOutputError(f"{what}: output {at} is no buffer: {error}") from None
            if type_ != output.placement.type:
                raise KernelOutputError(
                    f"{what}: output {at} is {type_}, but must be {output.placement.type}"
                )


def hook_name(device: Device, name: str) -> str:
    """Return how messages name a method of the backend."""
    return f"{name} of {device.owner} on backend {device.name!r}"
