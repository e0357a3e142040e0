"""How a spec gives the expression of its elementwise kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tensorplug.contract import signatures
from tensorplug.contract.arguments import quoted
from tensorplug.contract.expressions import FUNCTIONS, OPERATIONS, Expression, apply
from tensorplug.errors import DTypeError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.contract.dtypes import DType


Given: TypeAlias = "str | Callable[..., Expression | None]"


class ExpressionRule:
    """The rule of one spec.

    Args:
        given: the name of an operation or function of ``contract.expressions``, which is applied
            to the inputs; or a function of one expression for each input, then of the
            attributes that it names as keyword-only parameters (``attributes``: a dict of all;
            ``out``: the output's type).
        role: the spec, for messages.
        inputs: its inputs' names.
        attributes: their names.

    Raises:
        RegistrationError: ``given`` is neither.

    """

    def __init__(
        self, rule: Given, role: str, inputs: Sequence[str], attributes: Collection[str]
    ) -> None:
        self.given = rule
        self.role = role
        self._asks: Sequence[str] = ()
        if isinstance(rule, str):
            operation = OPERATIONS.get(rule)
            count = operation.operands if operation else FUNCTIONS.get(rule)
            if count != len(inputs):
                raise RegistrationError(
                    f"{role}: its expression must be an operation or a function of {len(inputs)} "
                    f"operands, got {quoted(rule)}"
                )
            return
        if not callable(rule):
            raise RegistrationError(
                f"{role}: expression must be the name of an operation, or a function, got "
                f"{quoted(rule)}"
            )
        taken, self._asks = signatures.named(rule, role)
        if len(taken) != len(inputs) or not set(self._asks) <= {*attributes, "attributes", "out"}:
            raise RegistrationError(
                f"{role}: its expression {signatures.location(rule)} must take {len(inputs)} "
                f"operands, then any of {[*attributes, 'out']} keyword-only"
            )

    @property
    def reads_output(self) -> bool:
        """Whether the expression may depend on the output's type, and so on its shape."""
        return "out" in self._asks

    def __call__(
        self, operands: Sequence[Any], attributes: Mapping[str, Any], out: Any
    ) -> Expression | None:
        """Return the expression of a call with these operands; None if it has none.

        ``operands``: an expression for each input, None for an absent one, a list for a variadic
        one. ``out``: the type of the output.

        Raises:
            RegistrationError: the rule returns something else, or an expression of another dtype.

        """
        try:
            if isinstance(self.given, str):
                expression: Any = apply(self.given, *operands)
            else:
                known = {**attributes, "attributes": attributes, "out": out}
                expression = self.given(*operands, **{name: known[name] for name in self._asks})
        except DTypeError:  # no operation takes these operands
            return None
        if expression is not None:
            self._check(expression, out.dtype)
        return expression  # type: ignore[no-any-return]  # an expression or None, as checked

    def _check(self, expression: Any, dtype: DType) -> None:
        if not isinstance(expression, Expression):
            raise RegistrationError(f"{self.role}: its expression is {quoted(expression)}")
        if expression.dtype is not dtype:
            raise RegistrationError(
                f"{self.role}: its expression has dtype {expression.dtype}, but the output {dtype}"
            )
