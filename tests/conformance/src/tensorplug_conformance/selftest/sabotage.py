"""How a kernel of a clean backend is made wrong: wrapped, for one kernel, on one engine.

A saboteur sees host arrays and a function that runs the clean kernel, and gives other arrays.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.registry import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.backend import Backend
    from tensorplug.spec import TensorType
    from tensorplug.tables import KernelEntry
    from tensorplug_conformance.session import Session
    from tensorplug_conformance.tables import Array

__all__ = ["Call", "Saboteur", "install"]


@dataclass(slots=True)
class Call:
    """One call of a sabotaged kernel.

    ``buffers`` are what the kernel was given; ``memory`` lasts as long as the plan.
    """

    backend: Backend
    buffers: Sequence[Any]
    types: Sequence[TensorType]
    attributes: Mapping[str, Any]
    run: Callable[..., list[Any]]
    memory: dict[str, Any] = field(default_factory=dict)

    def inputs(self) -> list[Any]:
        """Return the inputs as host arrays; a variadic one as a list of them."""
        return [self._host(each) for each in self.buffers]

    def _host(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._host(each) for each in given]
        return None if given is None else np.array(self.backend.to_host(given))

    def clean(self, inputs: Sequence[Any] | None = None, **changed: Any) -> list[Array]:
        """Return what the clean kernel gives, perhaps for other inputs or attributes."""
        buffers = self.buffers if inputs is None else [self._device(each) for each in inputs]
        found = self.run(buffers, {**self.attributes, **changed})
        return [np.array(self.backend.to_host(each)) for each in found]

    def _device(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._device(each) for each in given]
        return None if given is None else self.backend.from_host(given)


@dataclass(frozen=True, slots=True)
class Saboteur:
    """A plausible mistake in one kernel.

    ``outputs`` gives the wrong arrays; ``buffers``, where it stands instead, the very buffers.
    ``fits``: whether arrays are cut or stretched to the shape and dtype that the spec demands.
    """

    kind: str
    kernel: str
    wrong: Callable[[Call], Any]
    dtype: str = "float32"
    raw: bool = False

    @property
    def name(self) -> str:
        """What the matrix calls it."""
        return f"{self.kind}: {self.kernel}"


def install(session: Session, saboteur: Saboteur) -> None:
    """Put the saboteur in the place of its kernel, on this session's engine.

    Raises:
        LookupError: when the clean backend has no such kernel.

    """
    state = session.engine.registry.state
    name = session.device.backend_name
    owned = state.kernel(saboteur.kernel, name)
    if owned is None:
        raise LookupError(f"backend {name!r} has no kernel {saboteur.kernel!r} to sabotage")
    entry: KernelEntry = owned.entry
    # It asks for everything, so that an ignored attribute can be ignored on purpose.
    asks = (*entry.spec.attributes, "backend", "out")
    wrapped = _Wrapped(entry, saboteur)
    wrong = dataclasses.replace(entry, function=wrapped.prepare, prepares=True, asks=asks)
    owner = Owner("saboteur", saboteur.kind)
    session.engine.registry.add(owner, kernels=[(name, wrong)], override=True)


class _Wrapped:
    def __init__(self, entry: KernelEntry, saboteur: Saboteur) -> None:
        self.entry = entry
        self.saboteur = saboteur

    def prepare(self, *types: Any, **extras: Any) -> Callable[..., Any]:
        """Prepare the clean kernel, and return the wrong one."""
        entry, several = self.entry, self.entry.spec.several
        outs: list[TensorType] = list(extras["out"]) if several else [extras["out"]]
        backend = extras["backend"]
        attributes = {name: extras[name] for name in entry.spec.attributes}
        memory: dict[str, Any] = {}

        def run(buffers: Sequence[Any], changed: Mapping[str, Any]) -> list[Any]:
            given = {**extras, **changed}
            asked = {name: given[name] for name in entry.asks}
            if entry.prepares:
                result = entry.function(*types, **asked)(*buffers)
            else:
                result = entry.function(*buffers, **asked)
            return list(result) if several else [result]

        def kernel(*buffers: Any) -> Any:
            call = Call(backend, buffers, outs, attributes, run, memory)
            found = self.saboteur.wrong(call)
            if not self.saboteur.raw:
                found = [
                    backend.from_host(_fitted(each, type_))
                    for each, type_ in zip(found, outs, strict=True)
                ]
            return found if several else found[0]

        return kernel


def _fitted(array: Any, type_: TensorType) -> Array:
    """Return a wrong result in the shape and dtype that the spec demands."""
    given = np.asarray(array)
    with np.errstate(all="ignore"):
        converted = given.astype(type_.dtype.numpy)
    if given.shape == type_.shape:
        return converted
    return (
        np.resize(converted, type_.shape) if given.size else np.zeros(type_.shape, converted.dtype)
    )
