"""The language of the device: how statements become text for its compiler."""

from __future__ import annotations

from tensorplug_loops import native
from tensorplug_loops.dialects import c
from tensorplug_loops.machine import Machine
from tensorplug_loops.statements import Array, Kernel


def machine() -> Machine:  # REPLACE: what the device can do, from which loops are chosen
    """Return the description of the device: of the processor, as its C compiler knows it."""
    return native.describe()


class AcmeText(c.Text):
    """The text of one kernel. REPLACE whatever differs from C; see ``c.Text`` for the rest."""

    headers = c.Text.headers  # REPLACE: libraries to include, () for none
    calls = c.Text.calls  # REPLACE: names of built-in functions, {**c.Text.calls, "abs": "fabs"}
    space = ""  # REPLACE: the address space of arrays, such as "global "

    def begin(self) -> list[str]:  # REPLACE: the head of a kernel, where `item` is defined
        """Return the head of the function, which does the items from ``first`` to ``last``."""
        return super().begin()

    def pointer_to(self, array: Array) -> str:
        """Promise that arrays do not overlap: those that are written are new."""
        return f"{super().pointer_to(array)}restrict "


def write(kernel: Kernel) -> str:
    """Return the text of a kernel."""
    return AcmeText(kernel).write()
