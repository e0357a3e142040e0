"""ONNX models on every tensorplug backend.

``load`` returns a model: a function of named inputs, which compiles, differentiates, and moves to
other devices.
"""

from __future__ import annotations

from tensorplug_onnx import operators as _operators  # noqa: F401  # registers the rules
from tensorplug_onnx.errors import (
    ExternalDataError,
    InputError,
    ModelError,
    NodeError,
    OnnxError,
    UnsupportedError,
    ValueNeededError,
)
from tensorplug_onnx.model import Model, load

__all__ = [
    "ExternalDataError",
    "InputError",
    "Model",
    "ModelError",
    "NodeError",
    "OnnxError",
    "UnsupportedError",
    "ValueNeededError",
    "load",
]
