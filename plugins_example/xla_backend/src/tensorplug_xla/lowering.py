"""From formulas to executables: functions of JAX, lowered and compiled once for given types."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

from tensorplug_xla.formulas import FORMULAS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import programs
    from tensorplug_xla.formulas import Formula, Function


def compiled(
    function: Function, types: Sequence[Any], place: jax.Device, donated: Sequence[int] = ()
) -> Any:
    """Return a function of arrays of these types, compiled for a device.

    64 bits are allowed while it is compiled alone: JAX's setting belongs to the user.
    """
    with jax.enable_x64(True):  # noqa: FBT003  # of JAX
        shapes = [_shape(each, SingleDeviceSharding(place)) for each in types]
        jitted = jax.jit(function, donate_argnums=tuple(donated), keep_unused=True)
        return jitted.lower(*shapes).compile()


def _shape(type_: Any, where: SingleDeviceSharding) -> Any:
    if isinstance(type_, list):
        return [_shape(each, where) for each in type_]
    if type_ is None:
        return None
    return jax.ShapeDtypeStruct(type_.shape, type_.dtype.numpy, sharding=where)


def applied(formula: Formula, attributes: Mapping[str, Any], out: Any) -> Function:
    """Return a formula as a function of its inputs."""
    known = {**attributes, "out": out}
    return partial(formula.function, **{name: known[name] for name in formula.asks})


def traced(program: programs.TracedProgram) -> Callable[..., list[jax.Array]]:
    """Return a program as one function of its constants and inputs, which JAX traces."""

    def run(*arguments: jax.Array) -> list[jax.Array]:
        values: dict[int, Any] = {at: jnp.asarray(array) for at, array in program.literals.items()}
        values.update(zip((*program.constants, *program.inputs), arguments, strict=True))
        for call in program.calls:
            types = [program.types[at] for at in call.outputs]
            formula = FORMULAS[call.kernel]
            function = applied(formula, call.attributes, types if formula.several else types[0])
            made = function(*[_operand(values, operand) for operand in call.inputs])
            values.update(zip(call.outputs, made if formula.several else [made], strict=True))
        return [values[at] for at in program.outputs]

    return run


def _operand(values: Mapping[int, Any], operand: Any) -> Any:
    if isinstance(operand, tuple):
        return [values[each] for each in operand]
    return None if operand is None else values[operand]
