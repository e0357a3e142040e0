"""Random numbers that depend on nothing but a key: the same on every backend and every run.

The arguments have one order: the key, the shape, the dtype; the parameters of the distribution
follow by name. ``choice``, ``categorical`` and ``permutation`` draw from a tensor, which follows
the key. Functions take a key, and a key is for one use::

    key = tp.random.key(0)
    for_weights, for_data = tp.random.split(key)
    weights = tp.random.normal(for_weights, (3, 4))

A ``Generator`` makes a new key for every draw. Its methods are the functions without the key::

    rng = tp.random.Generator(0)
    weights = rng.normal((3, 4))
    dice = rng.integers((5,), low=1, high=7)

Bits, integers and uniform numbers are the same to the last bit on all backends, and so are
exponential and normal ones if the device computes as IEEE 754 requires. Draws that also use ops
such as ``log`` are the same up to the accuracy of those ops. The first elements of a draw do not
depend on how many are drawn: ``normal(key, (5,))`` is the beginning of ``normal(key, (6,))``,
and ``(2, 3)`` has the numbers of ``(6,)``.
"""

from __future__ import annotations

from typing import Final

from tensorplug.introspection import families
from tensorplug.tensors import generator

_OF_KEYS: Final = ("fold_in", "key", "split")  # these draw nothing

_public = families.public("random")
for _name, _function in _public.items():
    if _name not in _OF_KEYS:
        generator.attach(_function)
_public["Generator"] = generator.Generator
globals().update(_public)
__all__ = sorted(_public)
