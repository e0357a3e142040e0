"""Abstract evaluation: finding the calls of a decomposition without data or kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tensorplug.dispatch.context import Context, use_context
from tensorplug.dispatch.device import Device
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import operands
from tensorplug.errors import TensorplugError
from tensorplug.ops.elementwise import CAST

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan

    Resolve = Callable[[KernelSpec, Sequence[Any], Mapping[str, Any]], Sequence[TensorType]]

__all__ = ["AbstractEvaluation", "DataNeededError"]


class DataNeededError(TensorplugError, RuntimeError):
    """A decomposition reads the values of a tensor, which has no data in abstract evaluation."""


class _NoData:
    """The backend of an abstract evaluation, with the dtypes of the real one, but no data."""

    def __init__(self, device: Device) -> None:
        self.name = device.backend_name
        self.device = device.backend.device
        self.dtypes = device.backend.dtypes

    def from_host(self, _array: np.ndarray[Any, Any]) -> object:
        """Return a placeholder."""
        return self

    def to_host(self, _buffer: object) -> NoReturn:
        """Refuse.

        Raises:
            DataNeededError: always.

        """
        raise DataNeededError("it reads the values of a tensor")

    def allocation(self, _buffer: object) -> tuple[Hashable, int]:
        """Return no bytes, for another thread that counts memory."""
        return id(self), 0


class AbstractEvaluation:
    """Replaces the engine; ``resolve`` returns the output types of each call."""

    def __init__(self, engine: Engine, device: Device, resolve: Resolve) -> None:
        self._engine = engine
        self._resolve = resolve
        backend: Any = _NoData(device)
        self._device = Device(device.name, device.backend_name, backend, device.owner, device.host)

    def evaluate(self, plan: Plan) -> None:
        """Call a decomposition on tensors of the plan's types without data.

        Raises:
            DataNeededError: it reads the values of a tensor. Also its own errors.

        """
        tensors = [self._tensor(operand) for operand in plan.inputs]
        # With an observer no call uses the plan cache, which has real kernels.
        observers: Any = (self,)
        try:
            with use_context(Context(self, observers=observers)):
                plan.call(*tensors)
        finally:
            self._device.constants.clear()  # breaks a reference cycle

    def _tensor(self, type_: Any) -> Any:
        if isinstance(type_, list):
            return [self._tensor(member) for member in type_]
        return None if type_ is None else Tensor._of(self, self._device.placement(type_))

    # EngineProtocol ---------------------------------------------------------------------

    def run(
        self,
        _context: Context,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Return tensors of the call's output types, without data."""
        tensors = operands.prepare_inputs(self._device, spec, inputs)
        types = operands.types_of(tensors)
        found = self._resolve(spec, types, attributes)
        if not all(type_.known for type_ in found):
            raise DataNeededError(f"the output shape of {spec.name} depends on its data")
        outputs = [self._tensor(type_) for type_ in found]
        return outputs if spec.multiple_outputs else outputs[0]

    def convert(
        self,
        context: Context,
        value: Any,
        dtype: DType | None,
        what: str,
        *,
        device: str | None = None,
        copy: bool | None = True,
    ) -> Tensor:
        """Return a tensor of the type of ``value``, without copying data."""
        del device, copy
        if not isinstance(value, Tensor):
            return operands.import_value(value, dtype, self._device, what)
        # A tensor of another device is a constant of the decomposition.
        here = value._placement.device is self._device
        tensor: Tensor = value if here else self._tensor(value.type)
        if dtype is not None and tensor.dtype is not dtype:
            tensor = self.run(context, CAST, (tensor,), {"dtype": dtype})
        return tensor

    def constant(
        self, _context: Context, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return a tensor of the type of a constant."""
        if value.__class__ is tuple:
            return operands.index_constant(self._device, value)
        return operands.scalar_constant(self._device, spec, position, value, peer.dtype)

    def open(self, name: str | None) -> Device:
        """Return the device without data, or another device of the engine."""
        return self._device if name is None else self._engine.open(name)

    def follow(self, _context: Context) -> None:
        """Do nothing: there are no plans."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)  # such as the registry
