"""What the adapters share: the backend's methods, and a table of kernels by their names."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import (
    KernelRefusedError,
    KernelSpec,
    KernelTable,
    TensorType,
    hookimpl,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_science.special import specs as special

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from tensorplug.plugin import Backend

    Function = Callable[..., Any]

OF_SCIENCE: Final = [each for each in vars(special).values() if isinstance(each, KernelSpec)]
SPECS: Final = {spec.name: spec for spec in (*specs, *OF_SCIENCE)}


class Refused(Exception):  # noqa: N818  # says what it is
    """The library has no such function: the engine decomposes the call."""


@dataclass
class Library:
    """A library as a backend.

    Args:
        name: of the library.
        version: of the library.
        dtypes: those of its arrays.
        array: the class of its arrays.
        of_host: makes an array of one of NumPy.
        to_host: the other way.
        dtype_name: gives the name of an array's dtype, as tensorplug spells it.
        shape: gives the shape of an array.
        owner: gives a key of an array's memory.
        wait: waits for an array, and returns it.
        lacks: says whether an error means that the library does not implement a call.
        raises: classes of its errors, and what they are here.

    """

    name: str
    version: str
    dtypes: frozenset[Any]
    array: Any
    of_host: Function
    to_host: Function
    dtype_name: Function
    shape: Function = lambda array: tuple(array.shape)
    owner: Function = id
    wait: Function = lambda array: array  # eager by default
    lacks: Callable[[Exception], bool] = lambda error: isinstance(error, NotImplementedError)
    raises: Mapping[type[Exception], type[Exception]] = field(default_factory=dict)
    flushes_subnormals: frozenset[Any] = frozenset()
    widens: frozenset[Any] = frozenset()  # the library computes in every dtype that it has

    # What a backend has ------------------------------------------------------------------

    @property
    def device(self) -> str:
        """The library and its version."""
        return f"{self.name} {self.version} on the CPU"

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy."""
        return self.of_host(np.array(array, order="C"))

    def describe(self, buffer: Any) -> TensorType:
        """Return dtype and shape."""
        if not isinstance(buffer, self.array):
            raise TypeError(f"{type(buffer).__name__} is not an array of {self.name}")
        return TensorType(dt.of(self.dtype_name(buffer)), self.shape(buffer))

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        """Return a key of the memory, and the bytes that are seen of it."""
        type_ = self.describe(buffer)
        return self.owner(buffer), math.prod(type_.shape) * type_.dtype.itemsize

    def synchronize(self) -> None:
        """Do nothing: kernels wait for their results."""

    def memory(self) -> Mapping[str, int]:
        """Return no figures."""
        return {}

    def close(self) -> None:
        """Do nothing."""

    # Kernels -----------------------------------------------------------------------------

    def kernels(self, table: Mapping[str, Function]) -> KernelTable:
        """Return the table of functions as one of kernels.

        A function takes the inputs by position. One that an adapter defines asks for attributes,
        ``attributes`` (a dict of all) and ``out``, by its keyword-only parameters.
        """
        kernels = KernelTable()
        for name, function in table.items():
            kernels.prepare(SPECS[name])(self._preparing(name, function))
        return kernels

    def _preparing(self, name: str, function: Function) -> Function:
        asks = _asks(function)
        several = SPECS[name].multiple_outputs

        def run(*buffers: Any, **asked: Any) -> Any:
            try:
                result = function(*buffers, **asked)
                result = [self.wait(each) for each in (result if several else [result])]
            except tuple(self.raises) as error:
                ours = next(self.raises[each] for each in self.raises if isinstance(error, each))
                raise ours(str(error)) from error
            return result if several else result[0]

        def prepare(*types: Any, attributes: Mapping[str, Any], out: Any) -> Function:
            known = {**attributes, "attributes": attributes, "out": out}
            asked = {each: known[each] for each in asks}
            self._try(run, types, asked)
            return lambda *buffers: run(*buffers, **asked)

        prepare.__signature__ = _signature(  # type: ignore[attr-defined]
            SPECS[name].input_names, ("attributes", "out")
        )
        return prepare

    def _try(self, run: Function, types: Iterable[Any], asked: Mapping[str, Any]) -> None:
        """Run a call on ones, and decline it where the library does not implement it.

        Every other error is left for the call itself.
        """
        ones = [self._ones(each) for each in types]
        try:
            run(*ones, **asked)
        except Refused as error:
            raise KernelRefusedError(str(error)) from None
        except Exception as error:
            if self.lacks(error):
                raise KernelRefusedError(str(error).partition("\n")[0]) from error

    def _ones(self, type_: Any) -> Any:
        if isinstance(type_, list):
            return [self._ones(each) for each in type_]
        if type_ is None:
            return None
        return self.from_host(np.ones(type_.shape, type_.dtype.numpy))


def _asks(function: Function) -> tuple[str, ...]:
    if not getattr(function, "__module__", "").startswith("tensorplug_referee"):
        return ()
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


def _signature(inputs: Iterable[str], asks: Iterable[str]) -> inspect.Signature:
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    named = [inspect.Parameter(name, kinds[0]) for name in inputs]
    return inspect.Signature([*named, *(inspect.Parameter(name, kinds[1]) for name in asks)])


def hooks(library: Library, table: Mapping[str, Function]) -> tuple[Function, Function]:
    """Return the two hooks of a backend: a module gives them their names."""
    kernels = library.kernels(table)

    @hookimpl
    def tensorplug_create_backend(device: str | None) -> Backend:  # one
        """Return the library."""
        return library

    @hookimpl
    def tensorplug_kernels() -> Iterable[KernelTable]:
        """Return the kernels."""
        return (kernels,)

    return tensorplug_create_backend, tensorplug_kernels


# What several adapters ask of attributes ----------------------------------------------------


def refuse(why: str) -> Any:
    """Say that the library has no such function."""
    raise Refused(why)


def last(x: Any, axis: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of axes in which ``axis`` come last."""
    return (*(at for at in range(x.ndim) if at not in axis), *axis)


def spatial(pad: Any, data_format: str = "NHWC") -> list[tuple[int, int]]:
    """Return the paddings of the axes between batch and channels."""
    return list(pad[1:-1] if data_format[-1] == "C" else pad[2:])


def equal(pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return paddings that are the same on both sides."""
    return [
        before if before == after else refuse("paddings that differ") for before, after in pairs
    ]


def functions(names: str, module: Any) -> dict[str, Function]:
    """Return functions of a module by kernels: ``"Abs=abs Cos=cos"``."""
    pairs = (each.split("=") for each in names.split())
    return {kernel: getattr(module, function) for kernel, function in pairs}
