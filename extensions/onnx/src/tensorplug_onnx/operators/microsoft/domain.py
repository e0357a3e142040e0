"""How rules of onnxruntime's domain are registered."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug_onnx.rules import MICROSOFT, rule

if TYPE_CHECKING:
    from collections.abc import Callable

microsoft_rule: Final = partial(rule, domain=MICROSOFT)
"""As ``rule``, for ``com.microsoft``."""


def nhwc(function: Callable[..., Any], *images: int) -> Callable[..., Any]:
    """Return a rule for channels on the last axis, from one for channels on axis 1.

    Args:
        function: the rule; it returns one output.
        images: positions of the inputs that have channels.

    """

    @wraps(function)
    def of_last(*inputs: Any, **attributes: Any) -> Any:
        moved = [
            tp.moveaxis(one, -1, 1) if at in images and one is not None else one
            for at, one in enumerate(inputs)
        ]
        return tp.moveaxis(function(*moved, **attributes), 1, -1)

    return of_last
