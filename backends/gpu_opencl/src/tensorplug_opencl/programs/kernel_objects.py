"""The kernel objects of a program, which its launches share.

A driver keeps 5 to 10 KB for each kernel object, and Intel's needs longer to make one the more a
program has: 0.1 ms for the first hundred, 1.5 ms after three thousand. So a program has few. A
launch keeps the object whose constants it has set, until a launch without one takes it.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
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

    ``arguments``: of the kernel, 0 if the driver has not said how many. ``groups``: the sizes of
    groups that it allows, by those that were asked for. Steps are single operations of a deque,
    for other threads and for signal handlers.
    """

    __slots__ = ("_holders", "arguments", "groups")

    def __init__(self) -> None:
        self.arguments = 0
        self.groups: dict[tuple[int, int | None], int] = {}
        self._holders: deque[ref[Holder]] = deque()  # each one as often as it has objects

    def reclaim(self, holder: Holder) -> cl.Kernel | None:
        """Count one more object of ``holder``; return the idle one lent first, which it then gets.

        None: there is room for a new one, or calls are using all of them. The holder is counted
        before it has an object, so that what one call is looking at makes no room for another.
        """
        holders = self._holders
        holders.append(ref(holder))
        for _ in range(len(holders)):
            if len(holders) <= MOST:
                return None
            try:
                first = holders.popleft()
            except IndexError:  # another thread has released them all
                return None
            lender = first()
            if lender is None:  # it died, and so did its object
                continue
            kernel = lender.give_up()
            if kernel is not None:
                return kernel
            holders.append(first)  # a call is using it
        return None

    def forget(self, holder: Holder) -> None:
        """Count one object less of ``holder``, for which none could be made."""
        with suppress(ValueError, IndexError):  # released, or changed by another thread meanwhile
            self._holders.remove(ref(holder))

    def release(self) -> None:
        """Let all holders forget their idle objects."""
        for known in list(self._holders):
            holder = known()
            if holder is not None:
                holder.give_up()
        self._holders.clear()
