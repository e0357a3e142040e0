"""Eager: the interpreter of each real device, and the last one of any stack.

Every device has an ``interpreter``, which decides what becomes of the kernel calls made there,
and of whatever else a function does that other calls could notice: it reads and assigns
variables, draws random keys, counts. Those of real devices do all of this at once. A
transformation puts a device of its own into the context (``engine.stand_ins``). Its interpreter
records what happens, for a program (``compile.tracing``), or computes with other tensors in the
context outside (``engine.interpreters``); whatever it has no meaning of its own for, it passes on
to the interpreter of the device that it replaces. Eager is where that ends, so that nobody has to
ask whether there is an interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType

    Tensor = Any  # of modules above this one, which devices import
    Device = Any
    Placement = Any


class Eager:
    """Runs each call when it is made, and does at once what a function asks for."""

    __slots__ = ()

    # Calls

    def resolve(self, engine: Any, plan: Any) -> Any:
        """Set what a call of ``plan`` runs, once for all equal calls; return the steps tried."""
        return engine.resolve(plan)

    # Numbers of Python, which a program may have to read again in each run

    def number(
        self,
        value: Any,  # noqa: ARG002  # of other interpreters, here and below
        dtype: DType | None = None,  # noqa: ARG002
        *,
        peer: DType | None = None,  # noqa: ARG002
    ) -> Tensor | None:
        """Return a number that differs from run to run as a tensor; None: it is a constant."""
        return None

    def fixed(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the attributes of a call, without such numbers."""
        return attributes

    def constants(self, device: Device) -> Device:
        """Return the device whose cache keeps constants for calls on ``device``."""
        return device

    # Effects

    def read(self, variable: Any, held: Tensor) -> Tensor:  # noqa: ARG002
        """Return the contents of a variable, which holds ``held``."""
        return held

    def assign(self, variable: Any, tensor: Tensor) -> None:
        """Make the data of ``tensor`` the contents of a variable."""
        variable._keep(tensor)

    def change(self, tensor: Tensor) -> None:
        """Check that the contents of a tensor may be replaced."""

    def placement_of_copy(self, placement: Placement) -> Placement:
        """Return the placement of a copy of a tensor, to which a function may assign."""
        return placement

    def draw(self, generator: Any, type_: TensorType) -> Tensor:  # noqa: ARG002
        """Return a new key of a generator, of ``type_``."""
        return generator._draw()

    def check(self, check: Callable[[], None]) -> None:
        """Let each run of the program that is being traced call ``check`` first."""

    def forbid(self, message: str) -> None:
        """Raise an error with ``message``, if this is something that a program cannot repeat."""

    # Tensors

    def describe(self, tensor: Tensor) -> str | None:  # noqa: ARG002
        """Return a description of a tensor without data, in one line; None: it has data."""
        return None

    def distance(self, start: Tensor, stop: Tensor) -> int | None:
        """Return ``stop - start`` of integers, if it is the same for all; else None."""
        apart = np.unique(
            np.subtract(stop.numpy(), start.numpy(), dtype=np.int64, casting="unsafe")
        )
        return int(apart[0]) if apart.size == 1 else None


EAGER: Final = Eager()
