"""NumPy's ufuncs on tensors, which run tensorplug's functions.

NumPy's arrays and scalars bring their operators here, too: ``array + tensor`` is ``np.add``.
(NEP 13, "A mechanism for overriding ufuncs".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.tensors.array_namespace import namespace
from tensorplug.tensors.operators import KNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping


_OPERANDS: Final[tuple[type[Any], ...]] = (*KNOWN, list, tuple)

NAMES: Final = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "fabs": "abs",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
"""Our names, by NumPy's, where they differ."""


class Ufuncs:
    """Methods of Tensor."""

    __slots__ = ()

    def __array_ufunc__(
        self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        if not all(isinstance(operand, _OPERANDS) for operand in inputs):
            return NotImplemented  # another library may know both
        name = ufunc.__name__
        refused = _refusal(ufunc, method, options)
        if refused:
            raise TypeError(
                f"{refused} takes no Tensor; pass x.numpy(), or use tensorplug's functions"
            )
        ours = namespace(None)
        if name == "divmod":
            return ours.floor_divide(*inputs), ours.remainder(*inputs)
        try:
            function = getattr(ours, NAMES.get(name, name))
        except AttributeError as error:
            raise TypeError(f"numpy.{name} takes no Tensor: {error}") from None
        return function(*inputs)


def _refusal(ufunc: np.ufunc, method: str, options: Mapping[str, Any]) -> str:
    """Return the name of a call that tensorplug has no function for; "" if it may have one."""
    name = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        return f"the ufunc {name}"
    if method != "__call__":
        return f"numpy.{name}.{method}"
    return f"numpy.{name}({', '.join(f'{option}=...' for option in options)})" if options else ""
