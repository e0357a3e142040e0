"""Which sizes a decomposition reads, as its table says (docs/adr/0057)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tensor_types import unwatched

if TYPE_CHECKING:
    from tensorplug.contract.entries import DecompositionEntry
    from tensorplug.engine.plans import Plan
    from tensorplug.engine.registry import Owned


def declared_sizes(plan: Plan, owned: Owned[DecompositionEntry] | None) -> list[int] | None:
    """Return the sizes that a decomposition reads in a call; None if it does not declare them.

    What runs on the host, or is never a group, has nothing to declare.
    """
    if owned is None or owned.entry.on_host or owned.entry.alone or owned.entry.reads is None:
        return None
    sizes: list[int] = []
    shape = next((unwatched(type_).shape for type_ in plan.operand_types()), ())
    for name in owned.entry.reads:
        axes = plan.attributes[name]
        chosen = (
            range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
        )
        sizes += [shape[axis] for axis in chosen]
    return sizes
