"""The steps for tensorplug-opencl, which makes a program of the statements of each rule.

Attributes are arguments of the programs, so that all their values share one. What decides between
two forms of a rule is another text, and another program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import KernelSpec, KernelTable, TensorType
from tensorplug_opencl.extensions import elementwise_multiple
from tensorplug_train import specs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_opencl.extensions import DeviceBuffer, OpenCLBackend

Attributes = dict[str, Any]

kernels = KernelTable()

_FALL: Final = " new_parameter = parameter - rate * move;"
_MEAN: Final = " new_mean = {keep} * mean + rest_of_{keep} * g;"
_SQUARE: Final = " new_square = {keep} * square + rest_of_{keep} * (g * g);"
# A NaN in either is seen: one in the first by itself, one in the second makes >= false.
_LARGER: Final = " new_norm = old >= now || old != old ? old : now;"


def _gradient(attributes: Attributes) -> str:
    """Return the statement that declares g; without decay, an infinite parameter does no harm."""
    decays = attributes["weight_decay"] and not attributes.get("decoupled")
    return f"const A g = gradient{' + weight_decay * parameter' if decays else ''};"


def _constants(attributes: Attributes) -> dict[str, float]:
    """Return the numbers among the attributes, and what is left to 1 of those that are shares."""
    numbers = {
        name: attribute
        for name, attribute in attributes.items()
        if not isinstance(attribute, bool)
    }
    shares = [name for name in ("beta1", "beta2", "decay") if name in numbers]
    return {**numbers, **{f"rest_of_{name}": 1.0 - numbers[name] for name in shares}}


def _step(
    spec: KernelSpec,
    statements: str,
    inputs: Mapping[str, TensorType],
    outputs: Sequence[str],
    attributes: Attributes,
    backend: OpenCLBackend,
) -> Callable[..., list[DeviceBuffer]]:
    """Return the callable of buffers for one text of the rule."""
    outs = dict.fromkeys(outputs, inputs["parameter"])
    text = _gradient(attributes) + statements
    return elementwise_multiple(backend, spec.name, text, inputs, outs, _constants(attributes))


@kernels.prepare(specs.SGD)
def sgd(
    parameter: TensorType,
    gradient: TensorType,
    rate: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
) -> Callable[..., DeviceBuffer]:
    inputs = {"parameter": parameter, "gradient": gradient, "rate": rate}
    statements = " const A move = g;" + _FALL
    step = _step(specs.SGD, statements, inputs, ["new_parameter"], attributes, backend)
    return lambda *buffers: step(*buffers)[0]


@kernels.prepare(specs.MOMENTUM)
def momentum(
    parameter: TensorType,
    gradient: TensorType,
    velocity: TensorType,
    rate: TensorType,
    *,
    attributes: Attributes,
    nesterov: bool,
    backend: OpenCLBackend,
) -> Callable[..., list[DeviceBuffer]]:
    inputs = {"parameter": parameter, "gradient": gradient, "velocity": velocity, "rate": rate}
    move = "g + momentum * new_velocity" if nesterov else "new_velocity"
    statements = f" new_velocity = momentum * velocity + g; const A move = {move};" + _FALL
    outputs = specs.MOMENTUM.outputs
    return _step(specs.MOMENTUM, statements, inputs, outputs, attributes, backend)


@kernels.prepare(specs.ADAM)
def adam(
    parameter: TensorType,
    gradient: TensorType,
    mean: TensorType,
    square: TensorType,
    rate: TensorType,
    mean_correction: TensorType,
    square_correction: TensorType,
    *,
    attributes: Attributes,
    decoupled: bool,
    backend: OpenCLBackend,
) -> Callable[..., list[DeviceBuffer]]:
    inputs = {
        "parameter": parameter,
        "gradient": gradient,
        "mean": mean,
        "square": square,
        "rate": rate,
        "mean_correction": mean_correction,
        "square_correction": square_correction,
    }
    start = "parameter * (1 - rate * weight_decay)" if decoupled else "parameter"
    statements = (
        _MEAN.format(keep="beta1")
        + _SQUARE.format(keep="beta2")
        + " const A scale = a_sqrt(new_square) / a_sqrt(square_correction) + epsilon;"
        + f" new_parameter = {start} - (rate / mean_correction) * (new_mean / scale);"
    )
    return _step(specs.ADAM, statements, inputs, specs.ADAM.outputs, attributes, backend)


@kernels.prepare(specs.ADAMAX)
def adamax(
    parameter: TensorType,
    gradient: TensorType,
    mean: TensorType,
    norm: TensorType,
    rate: TensorType,
    mean_correction: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
) -> Callable[..., list[DeviceBuffer]]:
    inputs = {
        "parameter": parameter,
        "gradient": gradient,
        "mean": mean,
        "norm": norm,
        "rate": rate,
        "mean_correction": mean_correction,
    }
    statements = (
        _MEAN.format(keep="beta1")
        + " const A old = beta2 * norm; const A now = a_fabs(g);"
        + _LARGER
        + " const A move = new_mean / (new_norm + epsilon);"
        + " new_parameter = parameter - (rate / mean_correction) * move;"
    )
    return _step(specs.ADAMAX, statements, inputs, specs.ADAMAX.outputs, attributes, backend)


@kernels.prepare(specs.ADAGRAD)
def adagrad(
    parameter: TensorType,
    gradient: TensorType,
    square: TensorType,
    rate: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
) -> Callable[..., list[DeviceBuffer]]:
    inputs = {"parameter": parameter, "gradient": gradient, "square": square, "rate": rate}
    statements = (
        " new_square = square + g * g; const A move = g / a_sqrt(new_square + epsilon);" + _FALL
    )
    return _step(specs.ADAGRAD, statements, inputs, specs.ADAGRAD.outputs, attributes, backend)


@kernels.prepare(specs.RMSPROP)
def rmsprop(
    parameter: TensorType,
    gradient: TensorType,
    square: TensorType,
    mean: TensorType | None,
    velocity: TensorType | None,
    rate: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
) -> Callable[..., list[DeviceBuffer]]:
    """Leave absent inputs out of the text and the arguments."""
    inputs = {"parameter": parameter, "gradient": gradient, "square": square}
    outputs = ["new_parameter", "new_square"]
    statements = _SQUARE.format(keep="decay")
    under = "new_square"
    if mean:
        inputs["mean"] = mean
        outputs.append("new_mean")
        statements += _MEAN.format(keep="decay")
        statements += " const A apart = new_square - new_mean * new_mean;"
        under = "(apart < 0 ? 0 : apart)"
    move = f"rate * (g / a_sqrt({under} + epsilon))"
    if velocity:
        inputs["velocity"] = velocity
        outputs.append("new_velocity")
        statements += f" new_velocity = momentum * velocity + {move};"
        move = "new_velocity"
    inputs["rate"] = rate
    statements += f" new_parameter = parameter - ({move});"
    step = _step(specs.RMSPROP, statements, inputs, outputs, attributes, backend)
    return lambda *buffers: step(*[buffer for buffer in buffers if buffer is not None])
