"""Forms as the kernels of a backend that compiles groups."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    Group,
    GroupOutput,
    KernelRefusedError,
    KernelTable,
    TensorType,
    expressions,
    tables_of,
)
from tensorplug_loops import forms
from tensorplug_loops.forms.table import Form, FormTable, Operand, Table
from tensorplug_loops.templates import Sized, arguments, fixed, repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from tensorplug.plugin import Backend, DType, KernelEntry

    Function = Callable[..., Any]
    Compile = Callable[[Any, Any], Callable[..., Sequence[Any]] | None]
    Upload = Callable[[Any, Table], Any]

_ARRAYS: Final = 1 << 10  # of a group, where no limit is given
_INPUT, _ASKED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


def kernel_table(
    compile_group: Compile,
    *,
    dtypes: Iterable[DType] | None = None,
    own: Iterable[KernelTable] = (),
    upload: Upload | None = None,
    sized: bool = False,
    arrays: int = _ARRAYS,
) -> KernelTable:
    """Return all kernels that have a form, compiled by a backend.

    Args:
        compile_group: compiles a group of the whole language of loops for a backend, which comes
            first, since a plugin may have several devices; or returns None to decline it. Then the
            core runs the kernel's decomposition.
        dtypes: in which the kernels are native; None for all.
        own: tables of the backend, whose kernels take the place of these.
        upload: returns a buffer of a backend with a copy of numbers that a kernel reads as long as
            it lives; by its ``from_host`` if not given.
        sized: whether ``compile_group`` takes a ``templates.Sized``, which is planned at new sizes
            by what is known of others, instead of a ``Group``.
        arrays: inputs and outputs of a group, at most, from 8. Kernels that join more tensors, or
            take many steps of a search, are several groups.

    Example:
        The hook of a backend with a method ``compile_group``::

            @hookimpl
            def tensorplug_kernels(backend):
                if backend.name != "acme":
                    return ()
                return (kernel_table(AcmeBackend.compile_group),)

    """
    kept = None if dtypes is None else frozenset(dtypes)
    taken = {entry.spec.name for table in own for entry in table}
    result = KernelTable()
    for table in tables_of(forms, FormTable, "forms"):
        for entry in table:
            if entry.spec.name in taken:
                continue
            both = kept if entry.dtypes is None else entry.dtypes & (kept or entry.dtypes)
            result.prepare(entry.spec, dtypes=both)(
                _prepared(entry, compile_group, upload, sized=sized, arrays=arrays)
            )
    return result


def _prepared(
    entry: KernelEntry,
    compile_group: Compile,
    upload: Upload | None,
    *,
    sized: bool,
    arrays: int,
) -> Callable[..., Any]:
    multiple = entry.spec.multiple_outputs
    keyed = sized and "backend" not in entry.asks

    def prepare(*types: Any, backend: Backend, **asked: Any) -> Callable[..., Any]:
        nonlocal keyed
        out = asked["out"]
        if "backend" in entry.asks:
            asked["backend"] = backend
        outputs: tuple[TensorType, ...] = out if isinstance(out, tuple) else (out,)
        empty = not any(type_.size for type_ in outputs)

        def make(types: Sequence[Any], asked: dict[str, Any]) -> list[Form]:
            made = _empty(outputs) if empty else _made(entry, types, asked, arrays)
            return [_named(form, entry) for form in made]

        known = entry.spec.name, entry.function, arrays
        planned = _planned(known, types, asked, make) if keyed and not empty else None
        if planned is None:
            forms = make(types, asked)
            planned = [(fixed(form.group), form.sources) for form in forms]
        compiled = []
        for group, sources in planned:
            function = compile_group(backend, group if sized else group.group)
            if function is None:
                raise KernelRefusedError("the compiler of groups declines it")
            tables = [(at, each) for at, each in enumerate(sources) if not isinstance(each, int)]
            if tables:
                keyed = False  # they depend on sizes
                fill = partial(upload, backend) if upload else backend.from_host
                function = _holding(function, [(at, fill(table)) for at, table in tables])
            compiled.append((function, tuple(each for each in sources if isinstance(each, int))))
        if multiple:
            return _call(compiled, len(outputs))
        if len(compiled) == 1 and not any(isinstance(each, list | tuple) for each in types):
            function, sources = compiled[0]
            given = [at for at, each in enumerate(types) if each is not None]
            return _call_alone(function, tuple([given[at] for at in sources]), len(types))
        call = _call(compiled, 1)
        return lambda *operands: call(*operands)[0]

    prepare.__signature__ = _signature(entry)  # type: ignore[attr-defined]
    return prepare


def _made(
    entry: KernelEntry, types: Sequence[Any], asked: dict[str, Any], arrays: int
) -> list[Form]:
    made = entry.function(*_operands(types), **asked)
    if callable(made):
        made = made(arrays)
    return made if isinstance(made, list) else [made]


def _named(form: Form, entry: KernelEntry) -> Form:
    group = form.group
    return form if group.name else Form(replace(group, name=entry.spec.name), form.sources)


def _planned(
    entry: Hashable,
    types: Sequence[Any],
    asked: dict[str, Any],
    make: Callable[[Sequence[Any], dict[str, Any]], list[Form]],
) -> list[tuple[Sized, tuple[int | Table, ...]]] | None:
    """Return groups that are planned by what is known of other sizes, and what they read.

    None if the arguments have no key.
    """
    given = arguments(types, asked)
    if given.key is None:
        return None
    # Not by what is made for one table: others of the same device have the same plans.
    key = entry, given.key

    def read(sizes: Sequence[int]) -> list[tuple[int | Table, ...]]:
        return [form.sources for form in make(*given.at(sizes))]

    def group(sizes: Sequence[int], number: int) -> Group:
        return make(*given.at(sizes))[number].group

    return [
        (Sized((key, number), given.sizes, partial(group, number=number)), sources)
        for number, sources in enumerate(repeat(key, given.sizes, read))
    ]


def _signature(entry: KernelEntry) -> inspect.Signature:
    """Return the parameters that a table sees."""
    inputs = [inspect.Parameter(each, _INPUT) for each in entry.spec.input_names]
    asks = dict.fromkeys((*entry.asks, "backend"))
    return inspect.Signature([*inputs, *(inspect.Parameter(each, _ASKED) for each in asks)])


def _holding(function: Function, held: Sequence[tuple[int, Any]]) -> Function:
    """Return a function of the other buffers, given those at some places."""

    def complete(function: Function) -> Function:
        def run(*buffers: Any) -> Any:
            arguments = list(buffers)
            for at, table in held:
                arguments.insert(at, table)
            return function(*arguments)

        return run

    result, alone = complete(function), getattr(function, "alone", None)
    if alone is not None:
        result.alone = complete(alone)  # type: ignore[attr-defined]
    return result


def _operands(types: Sequence[Any]) -> list[Any]:
    """Return operands for the types of a kernel's inputs, numbered by the buffers there are."""
    count = 0

    def number(type_: TensorType) -> Operand:
        nonlocal count
        count += 1
        return Operand(type_, count - 1)

    return [
        None
        if each is None
        else number(each)
        if isinstance(each, TensorType)
        else [number(member) for member in each]
        for each in types
    ]


def _empty(outputs: Sequence[TensorType]) -> list[Form]:
    """Return the form of outputs without elements: it reads nothing."""
    made = []
    for type_ in outputs:
        zero = expressions.constant(0, type_.dtype)
        output = GroupOutput(zero, type_, (True,))
        made.append(Form(Group("", (0,), (), (), (output,)), ()))
    return made


def _call_alone(
    function: Callable[..., Sequence[Any]], sources: tuple[int, ...], inputs: int
) -> Callable[..., Any]:
    """Return the kernel of one output and of ``inputs`` that are a buffer each, or absent.

    A function of groups may have another one as its attribute ``alone``, which returns the only
    output itself.
    """
    alone: Callable[..., Any] = getattr(function, "alone", lambda *buffers: function(*buffers)[0])
    if sources == tuple(range(inputs)):
        return alone
    return lambda *operands: alone(*[operands[at] for at in sources])


def _call(
    compiled: Sequence[tuple[Callable[..., Sequence[Any]], tuple[int, ...]]], outputs: int
) -> Callable[..., list[Any]]:
    """Return the kernel of lists of buffers, of several outputs or of several groups."""

    def run(*operands: Any) -> list[Any]:
        buffers: list[Any] = []
        for operand in operands:
            if isinstance(operand, list | tuple):
                buffers += operand
            elif operand is not None:
                buffers.append(operand)
        for function, sources in compiled:
            buffers += function(*[buffers[number] for number in sources])
        return buffers[len(buffers) - outputs :]

    return run
