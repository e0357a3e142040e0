"""Hints in errors about arguments: ``dim=`` is called ``axis=`` here, and the like.

Python itself refuses a call that does not fit a function's parameters, before any code of the
function runs. So functions with options are public through a wrapper that adds the hint to that
error, and takes about a tenth of a microsecond: its code, made for the first call, has the
function's own parameters, which costs a fifth of passing them on as ``*args, **kwargs``. Functions
of operands alone that only dispatch a kernel, such as ``add``, stay as they are: there it would be
a tenth of a call.
"""

from __future__ import annotations

import functools
import inspect
from functools import partial
from inspect import Parameter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from inspect import Signature


Function = TypeVar("Function", bound="Callable[..., Any]")

_OPERANDS: Final = frozenset(("ArrayLike", "TensorLike", "Operand", "Tensor", "Variable"))
_MISSING: Final = object()
_HOT: Final = frozenset(("matmul",))  # as fast as functions of operands, with options all the same
_UNTOUCHED: Final = (
    "tensorplug.contract.",
    "tensorplug.dispatch.",
)  # classes for plugins' authors


def hinting(function: Function) -> Function:
    """Return ``function``, or the wrapper whose errors have hints, always the same one.

    The wrapper is an attribute of the function, by whose name pickle finds it.
    """
    if not _is_slow_enough(function):
        return function
    made: Function | None = vars(function).get("hinting")
    if made is not None:
        return made

    names = {"__name__": __name__, "function_": function, "refuse_": partial(_refuse, function)}
    names |= {"missing_": _MISSING, "specialize_": _specialize}
    call: Any = functools.wraps(function)(FunctionType(_first_call.__code__, names))
    names["call_"] = call
    call.__qualname__ = f"{function.__qualname__}.hinting"
    function.hinting = call  # type: ignore[attr-defined]  # functions take attributes
    return call  # type: ignore[no-any-return]  # it has the same parameters


def _first_call(*arguments: Any, **options: Any) -> Any:
    """The code of a wrapper before its first call; its globals are those of ``hinting``."""
    specialize_(call_, function_)  # type: ignore[name-defined]  # noqa: F821  # likewise the next line
    return call_(*arguments, **options)  # type: ignore[name-defined]  # noqa: F821


def _specialize(call: Any, function: Callable[..., Any]) -> None:
    """Give a wrapper the parameters of the function, as code that passes them on by name.

    ``rest_`` and ``unknown_`` take what does not fit; ``missing_`` stands for what is absent.
    """
    kinds = Parameter
    listed = list(inspect.signature(function).parameters.values())
    positional = [item for item in listed if item.kind <= kinds.POSITIONAL_OR_KEYWORD]
    named = [item for item in listed if item.kind is kinds.KEYWORD_ONLY]
    several = [f"*{item.name}" for item in listed if item.kind is kinds.VAR_POSITIONAL]
    heads = [item.name for item in positional]
    only = sum(item.kind is kinds.POSITIONAL_ONLY for item in positional)
    if only:
        heads.insert(only, "/")
    heads += [*(several or ["*rest_"]), *(item.name for item in named), "**unknown_"]
    required = [item.name for item in (*positional, *named) if item.default is item.empty]
    wrong = ["unknown_", *([] if several else ["rest_"])]
    wrong += [f"{name} is missing_" for name in required]
    passed = [*(item.name for item in positional), *several]
    passed += [f"{item.name}={item.name}" for item in named]
    pairs = ", ".join(f"{item.name!r}: {item.name}" for item in (*positional, *named))
    source = (
        f"def call({', '.join(heads)}):\n"
        f" if {' or '.join(wrong)}:\n"
        f"  return refuse_({{{pairs}}}, {several[0][1:] if several else 'rest_'}, unknown_)\n"
        f" return function_({', '.join(passed)})\n"
    )
    made: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), made)  # noqa: S102  # our own functions' parameters
    call.__defaults__ = tuple(
        _MISSING if item.default is item.empty else item.default for item in positional
    )
    call.__kwdefaults__ = {
        item.name: _MISSING if item.default is item.empty else item.default for item in named
    }
    call.__code__ = made["call"].__code__


def _refuse(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    rest: tuple[Any, ...],
    unknown: Mapping[str, Any],
) -> Any:
    """Call a function as its wrapper was called, which Python refuses; add a hint to its error."""
    arguments: list[Any] = []
    options: dict[str, Any] = {}
    for item in inspect.signature(function).parameters.values():
        value = given.get(item.name, _MISSING)
        absent = value is _MISSING or value is item.default
        if item.kind <= item.POSITIONAL_OR_KEYWORD and not options and (rest or not absent):
            arguments.append(value)
        elif not absent:
            options[item.name] = value
    try:
        return function(*arguments, *rest, **options, **unknown)
    except TypeError as error:
        explain(error, function, (*arguments, *rest), {**options, **unknown})
        raise


def hinting_all(names: dict[str, Any], public: list[str]) -> None:
    """Replace the public functions of a module, and methods of its classes, by hinting ones."""
    for name in public:
        value = names.get(name)
        if isinstance(value, FunctionType):
            names[name] = hinting(value)
        elif isinstance(value, type) and not value.__module__.startswith(_UNTOUCHED):
            _hint_methods(value)


def _hint_methods(owner: type) -> None:
    for name, member in list(vars(owner).items()):
        if isinstance(member, FunctionType) and (name == "__init__" or name[0] != "_"):
            made = hinting(member)
            if made is not member:
                made.__qualname__ = member.__qualname__  # found by its class
                setattr(owner, name, made)


def _is_slow_enough(function: Callable[..., Any]) -> bool:
    """Return whether a function has options, or does more than dispatch a kernel."""
    if not isinstance(function, FunctionType) or function.__name__ in _HOT:
        return False
    code, annotations = function.__code__, function.__annotations__
    if code.co_flags & inspect.CO_VARKEYWORDS:  # it takes any name, or is such a wrapper already
        return False
    operands = code.co_varnames[: code.co_posonlyargcount]
    return bool(
        not any(name.startswith("dispatch") for name in code.co_names)
        or code.co_argcount > code.co_posonlyargcount
        or code.co_kwonlyargcount
        or function.__defaults__
        or any(annotations.get(name) not in _OPERANDS for name in operands if name != "self")
    )


def explain(
    error: TypeError,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
) -> None:
    """Add a hint to the error with which Python refused the call, and to no other error."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is not None:  # the function ran
        return
    hint = _hint(function, arguments, options)
    if hint:
        error.args = (f"{error}; {hint}",)


def _hint(
    function: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> str:
    signature = inspect.signature(function)
    known = signature.parameters
    form = _form(function, signature)
    for name in options:
        if name not in known:
            return _of_keyword(name, known) or f"write {form}"
        if known[name].kind is known[name].POSITIONAL_ONLY:
            return f"pass {name} by position: {form}"
    slots = [item for item in known.values() if item.kind is not item.KEYWORD_ONLY]
    surplus = arguments[len(slots) :]
    if not surplus:
        return f"write {form}"
    last = slots[-1].name if slots else ""
    if last in ("shape", "axes") and all(type(item) is int for item in surplus):
        sizes = (*arguments[len(slots) - 1 : len(slots)], *surplus)
        before = [*(item.name for item in slots[:-1]), repr(sizes)]
        return f"write {function.__name__}({', '.join(before)})"
    named = [item.name for item in known.values() if item.kind is item.KEYWORD_ONLY]
    if len(named) == len(surplus) == 1:
        before = [*(item.name for item in slots), f"{named[0]}={surplus[0]!r:.40}"]
        return f"write {function.__name__}({', '.join(before)})"
    return f"options are passed by name: {form}" if named else f"write {form}"


def _of_keyword(name: str, known: Mapping[str, Parameter]) -> str:
    """Return what an unknown keyword is called here, or how to do without; "" if nobody knows."""
    # Only where an argument is wrong.
    from tensorplug.contract.misspellings import nearest, plain
    from tensorplug.tensors.foreign_keywords import ADVICE, KEYWORDS

    key = plain(name)
    alike = [ours for ours in known if plain(ours) == key]
    meant = {plain(theirs): ours for theirs, ours in KEYWORDS.items()}.get(key, ())
    for ours in (*alike, *(ours for ours in meant if ours in known)):
        if known[ours].kind is known[ours].POSITIONAL_ONLY:
            return f"here it is {ours}, which is passed by position"
        return f"here it is {ours}="
    advice = {plain(theirs): text for theirs, text in ADVICE.items()}.get(key)
    if advice:
        return advice
    by_name = [ours for ours, item in known.items() if item.kind is not item.POSITIONAL_ONLY]
    near = nearest(key, by_name) if key else ""
    return f"did you mean {near}=?" if near else ""


def _form(function: Callable[..., Any], signature: Signature) -> str:
    """Return how a function is called: ``integers(key, shape, dtype, low=..., high=...)``."""
    before = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    after = {"KEYWORD_ONLY": "=..."}
    parts = [
        f"{before.get(item.kind.name, '')}{item.name}{after.get(item.kind.name, '')}"
        for item in signature.parameters.values()
        if item.name != "self"
    ]
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    return f"{name}({', '.join(parts)})"
