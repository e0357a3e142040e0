"""The kernel objects of a program, which its launches share.

A driver keeps 5 to 10 KB for each kernel object, and Intel's needs longer to make one the more a
program has: 0.1 ms for the first hundred, 1.5 ms after three thousand. So a program has few. A
launch keeps the object whose constants it has set, until a launch without one takes it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol
from weakref import ref

if TYPE_CHECKING:
    import pyopencl as cl


MOST: Final = 64  # objects of one program, and further ones for calls that run at the same time


class Holder(Protocol):
    """A launch, which may have idle kernel objects."""

    def give_up(self) -> cl.Kernel | None:
        """Return an idle kernel object, which this holder forgets; None if it has none."""


class KernelObjects:
    """Who holds the kernel objects of a program, in the order in which they got them.

    Steps are single operations of a deque, for other threads and for signal handlers.
    """

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: deque[ref[Holder]] = deque()  # each one as often as it has objects

    def note(self, holder: Holder) -> None:
        """Count one more object of ``holder``."""
        self._holders.append(ref(holder))

    def reclaim(self) -> cl.Kernel | None:
        """Return the idle object that was lent first; None while a new one may be made."""
        if len(self._holders) < MOST:
            return None
        try:
            first = self._holders.popleft()
        except IndexError:  # another thread has released them all
            return None
        holder = first()
        if holder is None:  # it died, and so did its object
            return None
        kernel = holder.give_up()
        if kernel is None:  # a call is using it
            self._holders.append(first)
        return kernel

    def release(self) -> None:
        """Let all holders forget their idle objects."""
        for known in list(self._holders):
            holder = known()
            if holder is not None:
                holder.give_up()
        self._holders.clear()
