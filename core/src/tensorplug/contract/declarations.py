"""What a kernel spec declares: its inputs and its attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tensorplug.contract.tensor_types import InputTypes


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a kernel.

    ``canonical`` takes the value given and a dict of what is known by name: the input types and
    the attributes declared before this one. It returns the one form that kernels and rules see
    (an axis counted from the front, a list as a tuple), or raises ``ArgumentError``.
    ``default`` is TensorFlow.js's, ``REQUIRED`` where it has none. ``form`` says in a few words
    what ``canonical`` returns; docs/specs.md shows it.

    Examples:
        >>> power = tp.Attribute(lambda value, known: float(value), default=2)
        >>> spec = tp.KernelSpec("Power", ("x",), lambda x: x, attributes={"power": power})
        >>> with tp.register_kernel(spec, "cpu", lambda x, *, power: x**power):
        ...     print(tp.run_kernel(spec, [[1.0, 2.0]]))
        ...     print(tp.run_kernel(spec, [[1.0, 2.0]], {"power": 3}))
        Tensor([1., 4.], dtype=float32, device='cpu')
        Tensor([1., 8.], dtype=float32, device='cpu')

    """

    canonical: Callable[[Any, InputTypes], Hashable]
    default: Any = REQUIRED
    form: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """One input as a spec declares it: ``"x"``, optional ``"scale?"`` or variadic ``"xs[]"``."""

    name: str
    optional: bool
    variadic: bool

    @classmethod
    def parse(cls, text: str) -> Input:
        """Read the declaration ``text``."""
        return cls(text.rstrip("?[]"), text.endswith("?"), text.endswith("[]"))
