"""One client's tensors and plans, and what its messages do to them.

The client chooses the numbers. A call that fails makes its results *poisoned*: they hold its
error, and so do the results of calls that read them. Whoever reads one gets the error, and
``sync`` tells the first one that nobody has read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.errors import BackendMemoryError, KernelOutputError, TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_remote import values
from tensorplug_remote.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tensorplug.plugin import TensorType

_NUMBERS: Final = 1 << 20  # tensors and plans of a client
_SPECS: Final = {spec.name: spec for spec in specs}
_TEXT: Final = 4000  # characters of an error


@dataclass(slots=True)
class Poison:
    """Why a tensor has no contents: class, op and text of an error, and whether it was told."""

    error: tuple[str, str, str]
    told: bool = False


@dataclass(slots=True)
class Plan:
    """A kernel with its attributes; ``outs``: the types that the client expects.

    ``checked``: the types of inputs for which they are right.
    """

    kernel: str
    attributes: dict[str, Any]
    outs: tuple[TensorType, ...]
    text: str
    checked: list[Any] | None = None


@dataclass(slots=True)
class Answer:
    """What goes back: a value, bytes, or an error."""

    value: Any = None
    payload: Any = b""
    error: tuple[str, str, str] | None = None


@dataclass(slots=True)
class Session:
    """What one client has. Its methods run on the device that is active.

    Args:
        kernels: the names of those that the client may call.
        memory: the most bytes of all its tensors together, each counted in full.

    """

    kernels: Collection[str]
    memory: int
    _tensors: dict[int, tuple[tp.Tensor | Poison, int, str]] = field(default_factory=dict)
    _plans: dict[int, Plan] = field(default_factory=dict)
    _held: int = 0
    _fault: Poison | None = None

    def handle(self, message: list[Any], payload: bytearray) -> tuple[int, Answer] | None:
        """Do what a message says; return the number of a question with its answer.

        Raises:
            ProtocolError: it is no message that a client sends.

        """
        match message:
            case [str(kind), list(freed), *fields]:
                self._free(freed)
            case _:
                raise ProtocolError("a message begins with its kind and what is free")
        match kind, fields:
            case "plan", [number, str(kernel), dict(attributes), list(outs), str(text)]:
                self._plan(number, kernel, attributes, outs, text)
            case "call", [int(plan), list(inputs), list(outs)]:
                self._call(plan, inputs, outs)
            case "upload", [number, type_]:
                self._upload(number, values.decode_type(type_), payload)
            case "read", [int(question), int(number)]:
                return question, self._read(number)
            case "types", [int(question), list(numbers)]:
                return question, self._types(numbers)
            case "sync", [int(question)]:
                return question, self._synchronize()
            case _:
                raise ProtocolError(f"there is no message {kind[:40]!r} with these fields")
        return None

    def _free(self, numbers: list[Any]) -> None:
        for number in numbers:
            if type(number) is not int:
                raise ProtocolError(f"{str(number)[:40]!r} is no number")
            if self._plans.pop(number, None) is None:
                _, size, _ = self._tensors.pop(number, (None, 0, ""))
                self._held -= size

    def _new(self, number: Any) -> None:
        if type(number) is not int or number in self._tensors or number in self._plans:
            raise ProtocolError(f"{str(number)[:40]!r} is no new number")
        if len(self._tensors) + len(self._plans) >= _NUMBERS:
            raise ProtocolError(f"a client may have {_NUMBERS} tensors and plans")

    def _found(self, number: Any) -> tp.Tensor | Poison:
        if type(number) is not int or number not in self._tensors:
            raise ProtocolError(f"there is no tensor {str(number)[:40]}")
        return self._tensors[number][0]

    def _keep(self, number: int, value: tp.Tensor | Poison, text: str) -> None:
        size = 0 if isinstance(value, Poison) else value.nbytes
        self._tensors[number] = value, size, text
        self._held += size

    def _poisoned(self, error: Exception, text: str) -> Poison:
        poison = Poison(_told(error, text))
        if self._fault is None or self._fault.told:
            self._fault = poison
        return poison

    def _require(self, size: int) -> None:
        if self._held + size > self.memory:
            raise BackendMemoryError(
                f"the server lets a client hold {self.memory} bytes; it holds {self._held}, and "
                f"this needs {size} more"
            )

    def _plan(
        self, number: Any, kernel: str, attributes: dict[str, Any], outs: list[Any], text: str
    ) -> None:
        self._new(number)
        if kernel not in self.kernels:
            raise ProtocolError(f"the server has no kernel {kernel[:40]!r}")
        decoded = {name: values.decode(value) for name, value in attributes.items()}
        types = tuple(values.decode_type(out, unknown=True) for out in outs)
        self._plans[number] = Plan(kernel, decoded, types, text[:_TEXT])

    def _call(self, number: int, inputs: list[Any], outs: list[Any]) -> None:
        plan = self._plans.get(number)
        for out in outs:
            self._new(out)
        if plan is None or len(outs) != len(plan.outs) or len({*outs}) != len(outs):
            raise ProtocolError(f"there is no plan {number} with {len(outs)} results")
        tensors = _each(self._found, inputs)
        poison = next((each for each in _flat(tensors) if isinstance(each, Poison)), None)
        results: Sequence[tp.Tensor | Poison]
        try:
            results = [poison] * len(outs) if poison else self._run(plan, tensors)
        except Exception as error:  # noqa: BLE001  # it goes to the client
            results = [self._poisoned(error, plan.text)] * len(outs)
        for out, result in zip(outs, results, strict=True):
            self._keep(out, result, plan.text)

    def _run(self, plan: Plan, tensors: list[Any]) -> list[tp.Tensor]:
        types = _each(lambda tensor: tensor.type, tensors)
        if types != plan.checked:  # so that what a client says about results is not believed
            _, outs = _SPECS[plan.kernel].resolve(types, plan.attributes, dt.STORAGE)
            if outs != plan.outs:
                shown = ", ".join(map(str, outs))
                raise KernelOutputError(f"its results are {shown}, other than the client expects")
            plan.checked = types
        self._require(sum(type_.nbytes for type_ in plan.outs if type_.known))
        result = tp.run_kernel(plan.kernel, tensors, plan.attributes)
        return result if isinstance(result, list) else [result]

    def _upload(self, number: Any, type_: TensorType, payload: bytearray) -> None:
        self._new(number)
        if len(payload) != type_.nbytes:
            raise ProtocolError(f"{type_} has {type_.nbytes} bytes, got {len(payload)}")
        text = f"an upload of {type_}"
        try:
            self._require(type_.nbytes)
            array: Any = np.frombuffer(payload, np.uint8)
            # A byte of a bool is 0 or 1, whatever was sent.
            array = array != 0 if type_.dtype is dt.bool_ else array.view(type_.dtype.numpy)
            self._keep(number, tp.asarray(array.reshape(type_.shape), copy=True), text)
        except Exception as error:  # noqa: BLE001  # it goes to the client
            self._keep(number, self._poisoned(error, text), text)

    def _read(self, number: int) -> Answer:
        value = self._found(number)
        if isinstance(value, Poison):
            value.told = True
            return Answer(error=value.error)
        try:
            array = np.ascontiguousarray(value.numpy())
        except Exception as error:  # noqa: BLE001  # it goes to the client
            return Answer(error=_told(error, self._tensors[number][2]))
        return Answer(payload=array.reshape(-1).view(np.uint8))

    def _types(self, numbers: list[Any]) -> Answer:
        found = [self._found(number) for number in numbers]
        for each in found:
            if isinstance(each, Poison):
                each.told = True
                return Answer(error=each.error)
        return Answer([values.encode_type(each.type) for each in found])  # type: ignore[union-attr]  # none is poisoned

    def _synchronize(self) -> Answer:
        fault, self._fault = self._fault, None
        try:
            tp.synchronize()
        except Exception as error:  # noqa: BLE001  # it goes to the client
            fault = fault if fault and not fault.told else Poison(_told(error, "synchronize"))
        if fault is None or fault.told:
            return Answer()
        fault.told = True
        return Answer(error=fault.error)


def _told(error: Exception, text: str) -> tuple[str, str, str]:
    """Return the class, the op and the text of an error as the client sees it."""
    named = next(
        (
            kind.__name__
            for kind in type(error).__mro__
            if kind.__module__ == TensorplugError.__module__
        ),
        "BackendMemoryError" if isinstance(error, MemoryError) else "DeviceFaultError",
    )
    kind = "" if isinstance(error, TensorplugError) else f"{type(error).__name__}: "
    op = getattr(error, "op", "") or text.partition("(")[0] * ("(" in text)
    return named, op, f"{text} failed on the server: {kind}{error}"[:_TEXT]


def _each(function: Any, value: Any) -> Any:
    """Return the results of a function of numbers, which may be absent or in a list."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_each(function, each) for each in value]
    return function(value)


def _flat(values: list[Any]) -> list[Any]:
    return [one for each in values for one in (each if isinstance(each, list) else [each])]
