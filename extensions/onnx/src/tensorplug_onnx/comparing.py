"""A model's outputs beside those of another program that runs ONNX, for the same inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorplug_onnx.errors import InputError
from tensorplug_onnx.model import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorplug_onnx.values import Host


Reference = Literal["onnxruntime", "onnx"]
REFERENCES: Final[tuple[Reference, ...]] = ("onnxruntime", "onnx")
TOLERANCE: Final = 1e-4
"""The error that is allowed, by an output's largest magnitude: of many layers of float32."""


@dataclass(frozen=True, slots=True)
class OutputError:
    """How far one output is from the reference's.

    ``how``: ``node by node`` or ``compiled``. ``error``: the largest difference by the largest
    finite magnitude of the reference; infinite if anything but finite numbers differs: shapes,
    dtypes, places of NaN and of infinities, texts.
    """

    name: str
    how: str
    error: float


def compare(
    path: Path, inputs: Mapping[str, Any], reference: Reference = "onnxruntime"
) -> list[OutputError]:
    """Run a model on the active backend, node by node and compiled, and with another program.

    Args:
        path: of an .onnx file.
        inputs: NumPy arrays by name.
        reference: ``onnxruntime``, on its CPU and without its optimizations, or ``onnx``: the
            onnx package's slow evaluator.

    Returns:
        The error of each output, for each way to run it.

    Raises:
        InputError: onnxruntime is not installed, or an output is neither a tensor nor a sequence
            of tensors.
        OnnxError: the model does not load or run.

    Example:
        >>> compare(Path("model.onnx"), {"x": images})
        [OutputError(name='y', how='node by node', error=2.1e-07), ...]

    """
    right = _reference(path, inputs, reference)
    model = load(path)
    found = []
    for how, run in (("node by node", model), ("compiled", model.compile())):
        for (name, value), expected in zip(run(inputs).items(), right, strict=True):
            found.append(OutputError(name, how, _error(_arrays(value), _arrays(expected))))
    return found


def _reference(path: Path, inputs: Mapping[str, Any], reference: Reference) -> list[Any]:
    if reference == "onnx":
        from onnx.reference import ReferenceEvaluator  # takes half a second

        return list(ReferenceEvaluator(str(path)).run(None, dict(inputs)))
    try:
        import onnxruntime  # optional: it is only compared with
    except ImportError as error:
        raise InputError(
            "onnxruntime is not installed: pip install onnxruntime, or compare with ONNX's own "
            "evaluator (onnx)"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    # The nodes as they are: fused quantized layers round at other places.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(inputs)))


def _arrays(value: Any) -> list[Host]:
    """Return the arrays of an output.

    Raises:
        InputError: it has something else.

    """
    if isinstance(value, list):
        return [array for one in value for array in _arrays(one)]
    array = value if isinstance(value, np.ndarray | np.generic) else getattr(value, "numpy", None)
    if array is None:
        raise InputError(f"an output is a {type(value).__name__}, which cannot be compared")
    return [np.asarray(array() if callable(array) else array)]


def _error(found: list[Host], right: list[Host]) -> float:
    if len(found) != len(right):
        return np.inf
    return max((_difference(*pair) for pair in zip(found, right, strict=True)), default=0.0)


def _difference(found: Host, right: Host) -> float:
    texts = {found.dtype.kind, right.dtype.kind} <= {*"OSTU"}
    if found.shape != right.shape or (found.dtype != right.dtype and not texts):
        return np.inf
    if texts or not right.size:
        return 0.0 if np.array_equal(found.astype(object), right.astype(object)) else np.inf
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    x, y = found.astype(wide), right.astype(wide)
    finite = np.isfinite(y)
    others = np.array_equal(x[~finite], y[~finite], equal_nan=True)
    if not others or not np.isfinite(x[finite]).all():
        return np.inf
    size = np.abs(y[finite]).max(initial=0.0)
    difference = np.abs(x[finite] - y[finite]).max(initial=0.0)
    return float(difference / size) if size else float(np.inf if difference else 0.0)
