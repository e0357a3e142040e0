"""ONNX's own interface to what runs models: ``onnx.backend.base``.

The functions of this module run on the active backend of tensorplug; ``backend_of`` returns the
interface to one device.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import tensorplug as tp
from tensorplug_onnx.model import Model, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


class PreparedModel(BackendRep):
    """A model that takes and returns NumPy arrays."""

    def __init__(self, model: Model, device: str | None) -> None:
        self.model = model
        self._device = device

    def run(self, inputs: Any, **_options: Any) -> tuple[Any, ...]:
        """Return the outputs as NumPy arrays, or lists of them; an absent optional is None."""
        given = inputs if isinstance(inputs, dict | list | tuple) else [inputs]
        with _active(self._device):
            found = self.model(given) if isinstance(given, dict) else self.model(*given)
            values = [_plain(value) for value in found.values()]
        names = [info.name for info in self.model.outputs]
        made: tuple[Any, ...] = namedtupledict("Outputs", names)(*values)
        return made


class TensorplugBackend(Backend):
    """Runs ONNX models; ``device``: the tensorplug device that CPU stands for."""

    device: str | None = None

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_options: Any) -> PreparedModel:
        """Return a model that is ready to run.

        Args:
            model: any that ``tensorplug_onnx.load`` takes.
            device: ``"CPU"`` for the active backend, or a tensorplug device (``"opencl:1"``).

        Raises:
            OnnxError: as ``tensorplug_onnx.load`` does.

        """
        chosen = cls.device if device == "CPU" else device
        with _active(chosen):
            return PreparedModel(load(model), chosen)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[Any] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Run one node alone.

        Args:
            node: the node.
            inputs: NumPy arrays: one for each input that is not left out.
            device: as for ``prepare``.
            outputs_info: not needed.
            **options: ``opset_version``: of its domain; the newest one by default.

        """
        del outputs_info
        version = options.get("opset_version", onnx.defs.onnx_opset_version())
        names = list(dict.fromkeys(name for name in node.input if name))
        given = dict(zip(names, inputs, strict=True))
        graph = helper.make_graph(
            [node],
            "node",
            [_described(name, value) for name, value in given.items()],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        opset = helper.make_opsetid(node.domain, version)
        model = helper.make_model(graph, opset_imports=[opset])
        return cls.prepare(model, device).run(given)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether there is a device: ``"CPU"``, or one of tensorplug by its name."""
        return device == "CPU" or _is_device(device)


def backend_of(device: str | None) -> type[TensorplugBackend]:
    """Return ONNX's interface to one device of tensorplug; None: to the active one.

    Example:
        >>> from onnx.backend.test import BackendTest
        >>> tests = BackendTest(backend_of("opencl"), __name__)

    """
    return type("TensorplugBackend", (TensorplugBackend,), {"device": device})


prepare = TensorplugBackend.prepare
run_model = TensorplugBackend.run_model
run_node = TensorplugBackend.run_node
supports_device = TensorplugBackend.supports_device
is_compatible = TensorplugBackend.is_compatible


@cache  # ONNX's runner asks thousands of times
def _is_device(device: str) -> bool:
    return device in tp.devices()


def _active(device: str | None) -> AbstractContextManager[Any]:
    return nullcontext() if device is None else tp.use_backend(device)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    array = value.numpy() if isinstance(value, tp.Tensor) else value
    if isinstance(array, np.ndarray) and array.dtype.kind == "T":
        texts = np.empty(array.shape, object)
        texts[...] = array
        return texts
    return array


def _described(name: str, value: Any) -> onnx.ValueInfoProto:
    array = np.asarray(value)
    dtype = np.dtype(object) if array.dtype.kind in "OSUT" else array.dtype
    element = helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, element, array.shape)
