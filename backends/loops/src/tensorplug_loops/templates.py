"""Plans of kernels at new sizes, from those that were made for others (docs/adr/0073)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from tensorplug.plugin import Group, GroupInput, GroupOutput, TensorType
from tensorplug_loops.recording import MISSED, record

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from tensorplug_loops.recording import Recorded

    Sizes = Sequence[int]

T = TypeVar("T")

_KEPT: Final = 4096
_MET: Final = 1024  # keys met once, which may never come again
_EACH: Final = 8  # recordings of one function; with more, sizes decide too much

# Attributes whose whole numbers are sizes, or places; others decide.
_PLACES: Final = frozenset({"begin", "end", "shape", "paddings", "crops", "output_shape"})
_EXACT: Final = frozenset({int, bool, str, type(None)})

_recorded: Final[dict[Hashable, tuple[Recorded, ...]]] = {}
_met: Final[dict[Hashable, None]] = {}


def repeat(key: Hashable, sizes: Sizes, function: Callable[[Sizes], T]) -> T:
    """Return a function of sizes, which depends on ``key`` and on them alone.

    At the second call with a key it is recorded, and again where that does not hold.
    """
    known = _recorded.pop(key, ())
    if not known and key not in _met:
        result = function(sizes)
        _make_room(_met, _MET)
        _met[key] = None
        return result
    _make_room(_recorded, _KEPT)
    _recorded[key] = known  # the last to be dropped
    for recorded in known:
        found: Any = recorded(*sizes)
        if found is not MISSED:
            return found  # type: ignore[no-any-return]
    if len(known) >= _EACH:
        return function(sizes)
    recorded = record(function, sizes)
    _recorded[key] = (recorded, *known)
    result = recorded(*sizes)
    assert result is not MISSED, "what is recorded holds for its own sizes"
    return result


def _make_room(cache: dict[Hashable, Any], most: int) -> None:
    if len(cache) >= most:
        cache.pop(next(iter(cache)), None)


class Sized(NamedTuple):
    """A group at some sizes. ``make`` returns it; all that it depends on are ``key`` and sizes.

    ``key``: None for one that is not planned by what is known of others.
    """

    key: Hashable
    sizes: Sizes
    make: Callable[[Sizes], Group]

    @property
    def group(self) -> Group:
        """The group."""
        return self.make(self.sizes)

    def plan(self, decide: Callable[[Group], T], *more: Hashable) -> T:
        """Return what a function decides, which depends on the group and on ``more`` alone.

        In its result, numbers that depend on sizes stand in tuples, lists and types.
        """
        if self.key is None:
            return decide(self.group)
        make = self.make
        return repeat((self.key, more), self.sizes, lambda sizes: decide(make(sizes)))


def fixed(group: Group) -> Sized:
    """Return a group that is planned for itself alone."""
    return Sized(None, (), lambda _: group)


def sized(group: Group) -> Sized:
    """Return a group of which others have the same expressions at other sizes.

    Indices that are computed have numbers of their own, by which nothing is found again.
    """
    inputs, outputs = group.inputs, group.outputs
    ends: list[GroupInput | GroupOutput] = [*inputs, *outputs]
    if any(each.index is not None for each in ends):
        return fixed(group)
    key = (
        group.name,
        len(group.shape),
        tuple([(each.type.dtype, len(each.type.shape), each.spans) for each in inputs]),
        group.reductions,
        group.folds,
        tuple(
            [
                (each.type.dtype, len(each.type.shape), each.spans, each.expression, each.into)
                for each in outputs
            ]
        ),
    )
    sizes = list(group.shape)
    for each in ends:
        sizes += each.type.shape

    def make(sizes: Sizes) -> Group:
        rest = iter(sizes)
        shape = _take(rest, group.shape)
        return replace(
            group,
            shape=shape,
            inputs=tuple([replace(each, type=_typed(each.type, rest)) for each in inputs]),
            outputs=tuple([replace(each, type=_typed(each.type, rest)) for each in outputs]),
        )

    return Sized(key, sizes, make)


def _take(sizes: Iterator[int], shape: Sizes) -> tuple[int, ...]:
    return tuple([next(sizes) for _ in shape])


def _typed(type_: TensorType, sizes: Iterator[int]) -> TensorType:
    return TensorType(type_.dtype, _take(sizes, type_.shape))


class Arguments(NamedTuple):
    """What a kernel is prepared for: types of inputs, then what it asks for by name.

    ``key`` says all of it but for ``sizes``, in the order in which ``at`` takes them.
    """

    key: Hashable
    sizes: list[int]
    types: Sequence[Any]
    asked: Mapping[str, Any]

    def at(self, sizes: Sizes) -> tuple[list[Any], dict[str, Any]]:
        """Return the types and what is asked for, with other sizes."""
        rest = iter(sizes)
        types = [_with(each, rest) for each in self.types]
        return types, {name: _with(each, rest, name) for name, each in self.asked.items()}


def arguments(types: Sequence[Any], asked: Mapping[str, Any]) -> Arguments:
    """Return the arguments of a kernel, taken apart; the key is None if one is not hashable."""
    sizes: list[int] = []
    try:
        key: Hashable = (
            tuple([_apart(each, sizes) for each in types]),
            tuple([(name, _apart(each, sizes, name)) for name, each in asked.items()]),
        )
        hash(key)
    except TypeError:
        key = None
    return Arguments(key, sizes, types, asked)


def _apart(value: Any, sizes: list[int], name: str = "") -> Hashable:
    """Return what a value is but for its sizes, which are added to the others."""
    if value.__class__ is TensorType:
        sizes += value.shape
        return value.dtype, len(value.shape)
    if value.__class__ in _EXACT:
        if name in _PLACES and value.__class__ is int:
            sizes.append(value)
            return int
        return value.__class__, value
    if value.__class__ is dict:
        return tuple([(own, _apart(each, sizes, own)) for own, each in value.items()])
    if value.__class__ in {tuple, list}:
        return (value.__class__, *[_apart(each, sizes, name) for each in value])
    return repr(value), value  # which tells -0.0 from 0.0


def _with(value: Any, sizes: Iterator[int], name: str = "") -> Any:
    """Return a value with other sizes, in the order of ``_apart``."""
    if value.__class__ is TensorType:
        return _typed(value, sizes)
    if value.__class__ is int and name in _PLACES:
        return next(sizes)
    if value.__class__ is dict:
        return {own: _with(each, sizes, own) for own, each in value.items()}
    if value.__class__ in {tuple, list}:
        return value.__class__([_with(each, sizes, name) for each in value])
    return value
