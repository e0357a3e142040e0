"""Programs as Python functions: one line for each call, without a loop over them.

The interpreter then looks nothing up between two kernels. For 25 kernels on 16 elements the loop
took 6 of 15 microseconds.
"""

from __future__ import annotations

from functools import lru_cache, partial
from inspect import CO_NESTED
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.fusion.reuse import references

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.compile.programs.program import FlatCall
    from tensorplug.contract.backend import Buffer


_BEFORE: Final = 4  # the number of the first call's line
_KEPT: Final = 256  # code of programs that differ in constants and kernels alone is shared


class StraightLine:
    """Calls as the lines of a function.

    Args:
        calls: in their order.
        done: for each of them the slots that are free after it.
        inputs: the number of slots that are given.
        constants: slots with the same buffer in each run.
        outputs: the slots to return.

    """

    def __init__(
        self,
        calls: Sequence[FlatCall],
        done: Sequence[Sequence[int]],
        inputs: int,
        constants: Mapping[int, Buffer],
        outputs: Sequence[int],
    ) -> None:
        self._make(_compile(_write(calls, done, inputs, constants, outputs)), calls, constants)

    def _make(
        self, code: CodeType, calls: Sequence[FlatCall], constants: Mapping[int, Buffer]
    ) -> None:
        names: dict[str, Any] = {
            f"k{at}": call.run if call.unchecked is None else partial(self._check, at, call)
            for at, call in enumerate(calls)
        }
        names |= {_name(at, constants): buffer for at, buffer in constants.items()}
        # The name by which `observers.callsite` knows lines of this package.
        names |= {"__name__": __name__, "__builtins__": {}, "references": references}
        self.run: Callable[[Sequence[Buffer], list[Buffer] | None], list[Buffer]] = FunctionType(
            code, names
        )
        """Returns the outputs, given the inputs; empties the second list, if there is one."""

    def with_kernels(
        self, calls: Sequence[FlatCall], constants: Mapping[int, Buffer]
    ) -> StraightLine:
        """Return the same lines with other kernels and constants in the same places."""
        other = object.__new__(StraightLine)
        other._make(self.run.__code__, calls, constants)
        return other

    def _check(self, at: int, call: FlatCall, *operands: Any) -> Any:
        """Run a kernel for the first time, and compare its result with the spec."""
        result = call.run(*operands)
        assert call.unchecked is not None, "else the line calls the kernel itself"
        call.unchecked.check(result)
        self.run.__globals__[f"k{at}"] = call.run
        return result

    def find_failed(self, error: BaseException) -> int | None:
        """Return the position of the call that raised ``error``; None if none did."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is self.run.__code__:
                at = trace.tb_lineno - _BEFORE
                return at if at >= 0 else None
            trace = trace.tb_next
        return None


def _write(
    calls: Sequence[FlatCall],
    done: Sequence[Sequence[int]],
    inputs: int,
    constants: Collection[int],
    outputs: Sequence[int],
) -> str:
    """Return the function's text."""

    def names(slots: Sequence[int]) -> str:
        return "".join([f"{_name(slot, constants)}, " for slot in slots])

    def argument(operand: int | list[int] | None) -> str:
        if isinstance(operand, list):
            return f"[{names(operand)}]"
        return "None" if operand is None else _name(operand, constants)

    lines = [
        "def run(given, consumed):",
        f" [{names(range(inputs))}] = given",
        " if consumed is not None: consumed.clear()",
    ]
    assert len(lines) + 1 == _BEFORE
    for at, (call, free) in enumerate(zip(calls, done, strict=True)):
        target = names(call.outputs)
        target = f"[{target}]" if call.multiple_outputs else target.removesuffix(", ")
        counts = [f"references({_name(slot, constants)})" for slot in call.overwrites]
        arguments = ", ".join([*counts, *[argument(operand) for operand in call.inputs]])
        dying = [slot for slot in free if slot not in call.outputs] if call.empties else []
        left = [slot for slot in free if slot not in dying]
        if dying:  # the list has their last references
            given = f" operands = {arguments}; del {names(dying)[:-2]}; "
            lines.append(f"{given}{target} = k{at}(operands); del operands")
        else:
            lines.append(f" {target} = k{at}({arguments})")
        lines[-1] += f"; del {names(left)[:-2]}" if left else ""
    return "\n".join([*lines, f" return [{names(outputs)}]"])


def _name(slot: int, constants: Collection[int]) -> str:
    return f"c{slot}" if slot in constants else f"v{slot}"


@lru_cache(_KEPT)
def _compile(text: str) -> CodeType:
    """Return the code of the function that ``text`` defines.

    It is marked as nested. Without the GIL, Python leaves all other functions to the garbage
    collector, and with this one its kernels and constants.
    """
    module = compile(text, "<program>", "exec")
    code = next(code for code in module.co_consts if isinstance(code, CodeType))
    return code.replace(co_flags=code.co_flags | CO_NESTED)
