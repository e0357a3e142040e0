"""The methods that Tensor gets from ops marked ``@chained``.

At run time they are attached under the names of the ops, without a list (``chaining``). For
editors and type checkers they are written out in ``methods.pyi``, which is generated:
``python -m tensorplug.testing.method_stub`` writes it, and a test compares.
"""

from __future__ import annotations

__all__ = ["Methods"]


class Methods:
    """Base of Tensor; its methods are attached by the facade."""

    __slots__ = ()
