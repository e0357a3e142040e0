"""What the operands of a program are, and the error of a function that cannot become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.errors import CompileError, DataNeededError
from tensorplug.observers import callsite

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.dispatch.device import Placement
    from tensorplug.engine.plans import Plan


@dataclass(eq=False, slots=True)
class Value:
    """A placeholder for a buffer that exists only while a program runs."""

    placement: Placement


@dataclass(eq=False, slots=True)
class Constant:
    """A buffer that every run of a program uses.

    ``uniform``: the number that all its elements are, or the constant of one element that they
    are copies of; None if that is not known. ``made``: how it is computed, if it follows from
    sizes, and so is another one where these are.
    """

    buffer: Any
    placement: Placement
    uniform: Scalar | Constant | None = None
    made: Made | None = None

    def number(self) -> Scalar | None:
        """Return the number that all elements are; None if that is not known.

        It may be read from the device, once.
        """
        uniform = self.uniform
        if uniform is None and self.placement.type.size == 1:
            array = self.placement.device.read(self.buffer, self.placement.type)
            uniform = self.uniform = array.reshape(()).item()
        return uniform.number() if isinstance(uniform, Constant) else uniform


class Made(NamedTuple):
    """The call of which a constant is output ``at``: of a native plan, on constants."""

    plan: Plan
    inputs: list[Any]
    at: int


def error(message: str) -> CompileError:
    """Return an error with the current line of the traced function."""
    return CompileError(_located(message))


def needs_data(message: str, reason: str) -> DataNeededError:
    """Return an error with the current line of a traced function that needs data."""
    return DataNeededError(_located(message), reason)


def _located(message: str) -> str:
    site = callsite.find()
    where = "" if site is None else f" ({site.describe()})"
    return f"compile: {message}{where}"
