"""What can go wrong with a model: one class for each kind of failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorplug_onnx.graph import Node


class OnnxError(Exception):
    """Base of all errors of this package.

    Args:
        message: what is wrong.
        node: the node that failed, if one did; the message names it.

    """

    def __init__(self, message: str, *, node: Node | None = None) -> None:
        super().__init__(message)
        self.node = node


class ModelError(OnnxError, ValueError):
    """A file or a model is not valid ONNX: truncated, cyclic, inconsistent."""


class ExternalDataError(ModelError):
    """Weights in another file are missing, too short, or outside the folder of the model."""


class InputError(OnnxError, ValueError):
    """The inputs of a call do not fit to those of the model."""


class UnsupportedError(OnnxError, NotImplementedError):
    """A model needs an operator, or a version or a use of one, for which there is no rule."""


class NodeError(OnnxError, RuntimeError):
    """A node failed; the cause is attached. The message names node, op type and opset."""


class ValueNeededError(OnnxError, TypeError):
    """A compiled model needs the value of a tensor that is only known when it runs."""
