"""Constants of groups as arguments: one program serves all bounds, slopes and lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import lift_constants
from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Expression, Group


MOST: Final = 640  # bytes of the arguments for arrays and constants: the rest is for sizes
COMMON: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2})  # what compilers make use of


def extract(group: Group) -> tuple[Group, list[np.generic]]:
    """Return the group with further inputs for its constants, and their values as arguments.

    Numbers that many groups have stay in the program. So do all of a group with more of them than
    a kernel may have arguments.
    """
    pointers = 16 * (len(group.inputs) + len(group.outputs) + len(group.reductions))

    def choose(nodes: Sequence[Expression]) -> list[Expression]:
        chosen = [node for node in nodes if node.op == "constant" and _is_particular(node)]
        return chosen if pointers + sum(_make_argument(n).nbytes for n in chosen) <= MOST else []

    lifted, chosen = lift_constants(group, choose)
    return lifted, [_make_argument(node) for node in chosen]


def _is_particular(constant: Expression) -> bool:
    return constant.dtype is not dt.bool_ and constant.value not in COMMON


def _make_argument(constant: Expression) -> np.generic:
    """Return a constant, rounded to its dtype, in the type that computes with it."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(constant.value).astype(constant.dtype.numpy)
    argument: np.generic = ctypes.host(ctypes.computed(constant.dtype)).type(rounded[()])
    return argument
