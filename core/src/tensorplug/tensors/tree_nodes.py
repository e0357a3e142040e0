"""The containers of trees: how their classes are taken apart, and put together again.

A class is looked up once: dicts, lists, tuples and their subclasses, dataclasses, and classes
that ``register_tree`` adds.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar, overload
from weakref import WeakKeyDictionary

from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.likeness import slots_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, RegistrationError

Build: TypeAlias = Callable[[list[Any]], Any]
Level: TypeAlias = tuple[Sequence[Any], Sequence[Any], Build, Sequence[Any]]
"""The keys of one container, its children, a function that replaces them, and its static data."""

Open: TypeAlias = Callable[[Any], Level]
T = TypeVar("T")


def level(tree: Any) -> Level | None:
    """Return the level that starts at ``tree``; None for a leaf.

    Raises:
        ArgumentError: its class is derived from a registered one, but not registered itself.

    """
    opening = opening_of(tree)
    return None if opening is None else opening(tree)


def opening_of(tree: Any) -> Open | None:
    """Return the function that opens objects of a class; None for a leaf.

    Raises: as ``level``.
    """
    opening = _OPEN.get(tree.__class__, _unseen)
    return _find(type(tree)) if opening is _unseen else opening


def step(tree: Any, key: Any) -> str:
    """Return the path from ``tree`` to its child ``key`` as Python code: ``['w']``, ``.bias``."""
    plain = isinstance(tree, dict | list | tuple) and type(tree) not in _registered
    if not plain and isinstance(key, str) and key.isidentifier() and hasattr(tree, key):
        return f".{key}"
    return f"[{key!r}]"


# The classes of Python ----------------------------------------------------------------------


def _open_dict(tree: dict[Any, Any]) -> Level:
    keys = list(tree)
    return keys, list(tree.values()), partial(_dict, keys), ()


def _dict(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


def _open_list(tree: list[Any]) -> Level:
    return range(len(tree)), tree, list, ()


def _open_tuple(tree: tuple[Any, ...]) -> Level:
    return range(len(tree)), tree, tuple, ()


def _open_none(_tree: None) -> Level:
    return (), (), _none, ()


def _none(_values: list[Any]) -> None:
    return None


def _open_other_dict(tree: dict[Any, Any]) -> Level:
    keys, values, _, static = _open_dict(tree)
    shell = copy.copy(tree)  # keeps the attributes of a subclass, such as a default

    def build(values: list[Any]) -> dict[Any, Any]:
        clone = copy.copy(shell)
        for key, value in zip(keys, values, strict=True):
            clone[key] = value
        return clone

    return keys, values, build, static


def _open_other_list(tree: list[Any]) -> Level:
    shell = copy.copy(tree)

    def build(values: list[Any]) -> list[Any]:
        clone = copy.copy(shell)
        clone[:] = values
        return clone

    return range(len(tree)), list(tree), build, ()


def _open_other_tuple(tree: tuple[Any, ...]) -> Level:
    kind: Any = type(tree)
    return range(len(tree)), tree, getattr(kind, "_make", kind), ()


class OfDataclass:
    """Opens the instances of a dataclass.

    ``children``, ``static``: return what ``level`` does, in a tuple and in less time.
    """

    def __init__(self, kind: Any) -> None:
        fields = dataclasses.fields(kind)
        fixed = [field.name for field in fields if field.metadata.get("static")]
        self._keys = [field.name for field in fields if field.init and field.name not in fixed]
        self._declared = [field.name for field in fields if field.init and field.name in fixed]
        self._others = [field.name for field in fields if not field.init]
        self.children, self.static = _reader(self._keys), _reader(fixed)

    def __call__(self, tree: Any) -> Level:
        """Return the level that starts at ``tree``."""
        static = {name: getattr(tree, name) for name in self._declared}

        def build(values: list[Any]) -> Any:
            clone = type(tree)(**static, **dict(zip(self._keys, values, strict=True)))
            for name in self._others:
                if hasattr(tree, name) and not hasattr(clone, name):
                    object.__setattr__(clone, name, getattr(tree, name))  # it may be frozen
            return clone

        return self._keys, self.children(tree), build, self.static(tree)


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads attributes of an object."""
    if not names:
        return lambda _tree: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda tree: (read(tree),)


def _unseen(_tree: Any) -> Level:
    raise AssertionError("a class was not looked up")


_OPEN: Final[dict[type, Open | None]] = {
    **dict.fromkeys((Tensor, bool, int, float, complex, str, bytes)),
    dict: _open_dict,
    list: _open_list,
    tuple: _open_tuple,
    type(None): _open_none,
}
_registered: Final[set[type]] = set()
_found: WeakKeyDictionary[type, Open | None] = WeakKeyDictionary()


def _find(kind: type) -> Open | None:
    """Return how to open the instances of a class that is not in ``_OPEN``."""
    if kind in _OPEN:  # an instance may claim to have another class
        return _OPEN[kind]
    try:
        return _found[kind]
    except KeyError:
        pass
    base = next((base for base in kind.__mro__ if base in _registered), None)
    if base is not None:
        raise ArgumentError(
            f"{kind.__qualname__} is derived from {base.__qualname__}, a registered tree, but is "
            "not registered itself: call register_tree for it too"
        )
    found: Open | None = None
    if dataclasses.is_dataclass(kind):
        found = OfDataclass(kind)
    for builtin, other in _OTHERS.items():
        if issubclass(kind, builtin):
            found = other
    _found[kind] = found
    return found


_OTHERS: Final[dict[type, Open]] = {
    tuple: _open_other_tuple,
    list: _open_other_list,
    dict: _open_other_dict,
}


# Other classes ------------------------------------------------------------------------------

_ABSENT: Final = object()


@overload
def register_tree(
    kind: type[T],
    flatten: Callable[[T], tuple[Mapping[Any, Any] | Sequence[Any], Any]] | None = None,
    unflatten: Callable[[Any, Any], T] | None = None,
    *,
    children: Sequence[str] | None = None,
) -> type[T]: ...
@overload
def register_tree(
    *,
    flatten: Callable[[Any], tuple[Mapping[Any, Any] | Sequence[Any], Any]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
    children: Sequence[str] | None = None,
) -> Callable[[type[T]], type[T]]: ...
def register_tree(
    kind: Any = _ABSENT,
    flatten: Any = None,
    unflatten: Any = None,
    *,
    children: Sequence[str] | None = None,
) -> Any:
    """Turn the instances of a class into nodes of trees, like dicts and dataclasses.

    Wherever a function takes trees of tensors (``grad``, ``compile``, ``save``, optimizers), it
    then finds the tensors inside these instances, and returns instances with other tensors. For a
    class whose children are attributes, name them: all other attributes are static data. For any
    other class, give the two functions. (docs/trees.md)

    Static data belong to the signature of a compiled function. They must be hashable, and are
    compared with ``==``; 1, 1.0 and True count as different, there and inside of the data.

    Args:
        kind: the class; its subclasses are registered on their own. Without it,
            ``register_tree`` returns a decorator.
        flatten: returns the children of an instance, and its static data. The children are a
            mapping or a sequence: its keys or positions stand in error messages and in the names
            of saved tensors.
        unflatten: takes static data and children, in the form in which ``flatten`` returns them;
            returns an instance. The children may be anything, so it must not check them.
        children: the names of the attributes that are children, instead of the functions. A new
            instance gets its attributes without a call of ``__init__``.

    Returns:
        The class.

    Raises:
        ArgumentError: ``kind`` is not a class, or neither functions nor children are given.
        RegistrationError: the class is built in (such as ``dict``), or is registered already.

    Examples:
        >>> @tp.register_tree(children=["weight"])
        ... class Scale:
        ...     def __init__(self, weight, axis):
        ...         self.weight, self.axis = weight, axis
        >>> scale = Scale(tp.asarray([1.0, 2.0]), axis=0)
        >>> gradient = tp.grad(lambda s: tp.sum(s.weight**2, axis=s.axis))(scale)
        >>> gradient.weight.tolist(), gradient.axis
        ([2.0, 4.0], 0)

    """
    if kind is _ABSENT:
        return partial(register_tree, flatten=flatten, unflatten=unflatten, children=children)
    if not isinstance(kind, type):
        raise ArgumentError(f"register_tree: kind must be a class, got {quoted(kind)}")
    functions = (flatten, unflatten)
    if children is None and all(map(callable, functions)):
        opener = _with_functions(kind, flatten, unflatten)
    elif children is not None and functions == (None, None):
        opener = _with_attributes(kind, children)
    else:
        raise ArgumentError(
            f"register_tree: {kind.__qualname__} needs either the functions flatten and "
            "unflatten, or children, the names of attributes"
        )
    if kind in _OPEN or issubclass(kind, Tensor):
        known = "is registered already" if kind in _registered else "cannot be registered"
        raise RegistrationError(f"register_tree: {kind.__qualname__} {known}")
    _OPEN[kind] = opener
    _registered.add(kind)
    _found.clear()  # subclasses
    return kind


def unregister_tree(kind: type) -> None:
    """Undo ``register_tree``: instances of the class become what they were before.

    ``kind``: the class.

    Raises:
        RegistrationError: the class is not registered.

    Examples:
        >>> class Scale:
        ...     def __init__(self, weight):
        ...         self.weight = weight
        >>> _ = tp.register_tree(Scale, children=["weight"])
        >>> tp.unregister_tree(Scale)

    """
    key: object = kind  # a tensor, say, which has no hash
    if not isinstance(key, type) or key not in _registered:
        raise RegistrationError(f"unregister_tree: {quoted(kind)} is not registered")
    _registered.remove(kind)
    del _OPEN[kind]
    _found.clear()


def _with_functions(kind: type, flatten: Any, unflatten: Any) -> Open:
    def open_(tree: Any) -> Level:
        found = flatten(tree)
        if not isinstance(found, tuple) or len(found) != 2:
            raise _bad_children(kind, found)
        children, static = found
        if isinstance(children, Mapping):
            keys = list(children)
            values = [children[key] for key in keys]
            return keys, values, lambda new: unflatten(static, _dict(keys, new)), [static]
        if not isinstance(children, list | tuple):
            raise _bad_children(kind, found)
        return range(len(children)), children, partial(unflatten, static), [static]

    return open_


def _bad_children(kind: type, found: Any) -> ArgumentError:
    return ArgumentError(
        f"register_tree: flatten of {kind.__qualname__} must return a mapping or a sequence of "
        f"children, and static data, got {quoted(found)}"
    )


def _with_attributes(kind: Any, children: Sequence[str]) -> Open:
    if isinstance(children, str) or not all(isinstance(name, str) for name in children):
        raise ArgumentError(
            f"register_tree: children must be names of attributes, got {quoted(children)}"
        )
    keys = list(children)
    slots = [name for base in kind.__mro__ for name in slots_of(base)]

    # A cached value may depend on the children.
    cached = [name for name in dir(kind) if isinstance(getattr(kind, name, None), cached_property)]
    left_out = {*keys, *cached}

    def open_(tree: Any) -> Level:
        names = [name for name in (*slots, *getattr(tree, "__dict__", ())) if name not in left_out]
        fixed = {name: getattr(tree, name) for name in names if hasattr(tree, name)}

        def build(values: list[Any]) -> Any:
            clone = object.__new__(kind)
            for name, value in (*fixed.items(), *zip(keys, values, strict=True)):
                object.__setattr__(clone, name, value)  # the class may refuse assignments
            return clone

        children = [getattr(tree, name) for name in keys]
        return keys, children, build, [item for pair in fixed.items() for item in pair]

    return open_


def static_field(**options: Any) -> Any:
    """Return a field of a dataclass that holds static data, not a child of a tree.

    Static data belong to the signature of a compiled function, stay as they are in gradients and
    ``tree_map``, and are not saved. They must be hashable. The field has the metadata
    ``{"static": True}``, which ``dataclasses.field(metadata=...)`` may also give.

    Args:
        options: those of ``dataclasses.field``: ``default``, ``default_factory``, ``kw_only``...

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Layer:
        ...     weight: tp.Tensor
        ...     activation: str = tp.static_field(default="relu")
        >>> tp.tree_map(lambda leaf: leaf * 2, Layer(3.0, "tanh"))
        Layer(weight=6.0, activation='tanh')

    """
    metadata = {**(options.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **options)
