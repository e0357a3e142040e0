"""Trees of tensors and numbers as flat names, and back.

Keys, positions and fields are joined by dots. A record in the file's metadata lists what the
names cannot say: which parts are lists and tuples, and the exact values of Python numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


RECORD: Final = "tensorplug.tree"
"""The key of the record in the metadata."""

_RESERVED: Final = "__metadata__"
_KINDS: Final = {"list": list, "tuple": tuple}
_NUMBERS: Final = (bool, int, float)
_PLAIN: Final = (Mapping, list, tuple)


class Record(NamedTuple):
    """What names do not say, by name: the kinds of containers, and the values of numbers.

    ``nested``: whether the dots in names join levels of a tree.
    """

    containers: dict[str, str]
    numbers: dict[str, float]
    nested: bool = False

    def text(self) -> str | None:
        """Return the record for the metadata; None if there is nothing to say."""
        return json.dumps(self._asdict()) if any(self) else None

    @classmethod
    def of(cls, text: str | None) -> Record:
        """Return the record that ``text`` made.

        Raises:
            FileFormatError: it is damaged.

        """
        if text is None:
            return cls({}, {})
        try:
            parsed = json.loads(text)
            record = cls(parsed["containers"], parsed["numbers"], parsed["nested"])
            valid = (
                isinstance(parsed["nested"], bool)
                and all(kind in _KINDS for kind in record.containers.values())
                and all(number.__class__ in _NUMBERS for number in record.numbers.values())
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FileFormatError(f"load: the metadata {RECORD!r} is damaged: {error}") from None
        if not valid:
            raise FileFormatError(f"load: the metadata {RECORD!r} is damaged: {quoted(text)}")
        return record


def is_container(value: Any) -> bool:
    """Return whether ``value`` is a level of a tree, and not data of one tensor.

    Lists and tuples are levels if they contain a tensor; others are nested lists of numbers.
    """
    if isinstance(value, Mapping) or hasattr(value, "_fields"):
        return True
    if isinstance(value, list | tuple):
        return any(isinstance(child, Tensor) or is_container(child) for child in value)
    return value is not None and tree.opened(value) is not None  # a dataclass


def recorded(value: Any) -> tuple[list[tuple[str, Any]], Record]:
    """Return the leaves of a tree by name, in order, and what the names do not say."""
    record = Record({}, {})
    try:
        if not is_container(value):
            raise ArgumentError(
                f"save: tensors must be a dict of tensors by name, got {type(value).__name__}; "
                "lists and tuples must contain tensors"
            )
        deep = any(is_container(child) for _, child in _children(value))
        leaves = list(_flat("", value, record, deep=deep))
    except RecursionError:
        tree.flatten(value)  # says which container is endless
        raise
    return leaves, record._replace(nested=deep or not isinstance(value, Mapping))


def _flat(outer: str, value: Any, record: Record, *, deep: bool) -> Iterator[tuple[str, Any]]:
    kind: type = type(value)
    if kind in _KINDS.values():
        record.containers[outer] = kind.__name__
    children = [(key, child) for key, child in _children(value) if not _is_omitted(value, child)]
    if not children and outer:
        raise ArgumentError(
            f"save: name {outer.rpartition('.')[2]!r}{_within(outer)}: an empty "
            f"{'dict' if isinstance(value, Mapping) else type(value).__name__} cannot be saved; "
            "omit it"
        )
    for key, child in children:
        _check_name(outer, key, deep=deep)
        name = f"{outer}.{key}" if outer else key
        if is_container(child):
            yield from _flat(name, child, record, deep=deep)
        else:
            if child.__class__ in _NUMBERS:
                record.numbers[name] = child
            yield name, child


def _children(value: Any) -> list[tuple[Any, Any]]:
    """Return the children of a container by name."""
    if isinstance(value, Mapping):
        return list(value.items())
    fields = getattr(value, "_fields", None)  # of a named tuple
    if fields is not None:
        return list(zip(fields, value, strict=True))
    return [(str(key), child) for key, child in (tree.opened(value) or {}).items()]


def _is_omitted(value: Any, child: Any) -> bool:
    """Return whether a child needs no name: a layer without tensors, or None in a dataclass."""
    return _is_bare(child) and not (child is None and isinstance(value, _PLAIN))


def _is_bare(value: Any) -> bool:
    return not isinstance(value, _PLAIN) and not tree.flatten(value)[0]


def _within(name: str) -> str:
    outer = name.rpartition(".")[0]
    return f" in {outer!r}" if outer else ""


def _check_name(outer: str, name: Any, *, deep: bool) -> None:
    where = f"save: name {name!r}" + (f" in {outer!r}" if outer else "")
    if not isinstance(name, str) or not name or name == _RESERVED or not encodes(name):
        raise ArgumentError(
            f"{where}: a name must be text that is not empty and not {_RESERVED!r}"
        )
    if deep and "." in name:
        raise ArgumentError(
            f"{where}: the names of nested dicts must not contain dots, which join them; "
            "rename it, or flatten the dict yourself"
        )


def encodes(name: str) -> bool:
    """Return whether UTF-8 can encode a text."""
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


# Back -------------------------------------------------------------------------------------


def nested(loaded: Mapping[str, Any], record: Record) -> Any:
    """Return the tree of named tensors, with the lists, tuples and numbers of the record.

    Raises:
        ArgumentError: a name is also a prefix of another one, or is nested too deeply.

    """
    check_nesting(loaded)
    root: dict[str, Any] = {}
    for name, tensor in loaded.items():
        *outer, last = name.split(".")
        level = root
        for part in outer:
            level = level.setdefault(part, {})
        level[last] = record.numbers.get(name, tensor)
    try:
        return _listed("", root, record.containers)
    except RecursionError:
        raise _too_deep(max(loaded, key=lambda name: name.count("."))) from None


def _listed(name: str, level: Any, containers: Mapping[str, str]) -> Any:
    if not isinstance(level, dict):
        return level
    inner = {
        key: _listed(f"{name}.{key}" if name else key, child, containers)
        for key, child in level.items()
    }
    kind = _KINDS.get(containers.get(name, ""))
    positions = [str(at) for at in range(len(inner))]
    # With `names`, parts of a list may be missing: then positions stay names.
    if kind is None or inner.keys() != set(positions):
        return inner
    return kind(inner[at] for at in positions)


def check_nesting(names: Iterable[str]) -> None:
    """Refuse a name that, followed by a dot, begins another name, or has too many dots.

    Raises:
        ArgumentError: there are such names.

    """
    listed = list(names)
    for name in listed:
        if name.count(".") >= sys.getrecursionlimit():
            raise _too_deep(name)
    # Sorted by their parts, a name stands directly before those that it begins.
    for name, following in pairwise(sorted(listed, key=lambda name: name.split("."))):
        if following.startswith(f"{name}."):
            raise ArgumentError(
                f"load: nested dicts cannot contain both {quoted(name)} and {quoted(following)}; "
                "load without nested=True"
            )


def _too_deep(name: str) -> ArgumentError:
    return ArgumentError(
        f"load: {quoted(name)} is nested {name.count('.')} levels deep, which is too deep for "
        "Python; load without nested=True"
    )


def names_of(example: Any) -> list[str]:
    """Return the names under which ``save`` stores the leaves of a tree."""
    return [name for name, _ in recorded(example)[0]]


def like(example: Any, loaded: Mapping[str, Tensor], record: Record, path: object) -> Any:
    """Return a tree like ``example`` with the loaded tensors, and with numbers for numbers.

    Raises:
        ShapeError, DTypeError: a tensor does not have the type of that in ``example``.

    """

    def restore(name: str, part: Any) -> Any:
        if _is_bare(part):
            return part
        if is_container(part):
            children = [
                restore(f"{name}.{key}" if name else key, child) for key, child in _children(part)
            ]
            if isinstance(part, Mapping) and not isinstance(part, dict):
                return dict(zip(part, children, strict=True))
            return tree.with_children(part, children)
        tensor = loaded[name]
        if part.__class__ in _NUMBERS:
            number = record.numbers.get(name, None)
            return part.__class__(tensor.item() if number is None else number)
        if isinstance(part, Tensor) and tensor.type != part.type:
            kind = DTypeError if tensor.dtype is not part.dtype else ShapeError
            raise kind(f"load: {name!r} is {tensor.type} in {path}, but {part.type} in like")
        return tensor

    return restore("", example)
