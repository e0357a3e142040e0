"""Finding the live objects of a class, without a registry of them.

Registering each tensor would make the cheapest op a tenth slower (docs/adr/0006). The garbage
collector knows all objects. But ``gc.get_objects`` returns a list that also refers to the tuples
that threads are filling right now. If one of these threads runs while the list exists, its
``tuple(generator)`` fails with SystemError. Here the list contains what refers to the class, as
its objects do, and is made, searched and freed in one call of C code, during which no other
thread runs.
"""

from __future__ import annotations

import gc
from itertools import chain
from typing import TypeVar

T = TypeVar("T")


def live_objects(kind: type[T]) -> list[T]:
    """Return the objects whose class is ``kind`` itself, except those frozen by ``gc.freeze``.

    Some may be incomplete, because another thread is making them.
    """
    collecting = gc.isenabled()
    try:
        gc.disable()  # a finalizer is Python code, in which threads may switch
        # `list` drives everything; no variable holds a part of it.
        members = list(
            filter(kind.__instancecheck__, chain.from_iterable(map(gc.get_referrers, (kind,))))
        )
    finally:
        if collecting:
            gc.enable()
    return [member for member in members if type(member) is kind]
