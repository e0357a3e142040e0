"""Products by dequantized weights become products by the weights, of which no copy is made.

``x @ dequantize(q, scale)`` is what the kernel of products of quantized matrices computes for
floats without a scale, with the same shapes of scales. Where a backend has it natively, for these
sizes and dtypes, one call stands for the product, for a Transpose of the weights before it, and
for all calls that dequantized them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.passes import eliminate_dead_calls
from tensorplug.contract import dtypes as dt
from tensorplug.ops import matrix_products, movement
from tensorplug.ops.quantization import FACTORS
from tensorplug.ops.quantized_products import QUANTIZED_MAT_MUL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.engine.engine import Engine

    Makers = Mapping[Value | Constant, Call]


def fold_dequantized(
    engine: Engine,
    calls: Sequence[Call],
    results: Sequence[Value | Constant],
    declined: list[Call],
) -> Sequence[Call]:
    """Return the calls of a trace, with products by quantized weights where that is possible.

    Weights that something else reads, too, are dequantized anyway, and stay as they are.
    ``declined``: gets the products for which there is no kernel at these sizes.
    """
    if all(call.dequantized is None for call in calls):
        return calls
    calls = eliminate_dead_calls(calls, results)
    uses = Counter(operand for call in calls for operand in call.operands())
    uses.update(results)
    makers: Makers = {
        output: call for call in calls for output in call.outputs if uses[output] == 1
    }
    folded = [_folded(engine, call, makers, declined) or call for call in calls]
    return eliminate_dead_calls(folded, results)


def _folded(engine: Engine, call: Call, makers: Makers, declined: list[Call]) -> Call | None:
    """Return the product by weights in the place of a call.

    ``makers``: the call that makes a value which is used once.
    """
    plan = call.plan
    if plan.spec is not matrix_products.BATCH_MAT_MUL or plan.attributes["transpose_a"]:
        return None
    x, w = call.operands()
    turned, maker = plan.attributes["transpose_b"], makers.get(w)
    if maker is not None and maker.plan.spec is movement.TRANSPOSE:
        *lead, row, column = range(len(maker.plan.attributes["perm"]))
        if maker.plan.attributes["perm"] != (*lead, column, row):
            return None
        turned, maker = not turned, makers.get(maker.operands()[0])
    if maker is None or maker.dequantized is None:
        return None
    dtype = plan.output.type.dtype
    q, scale, *rest = maker.dequantized
    assert q is not None, "its spec requires it"
    assert scale is not None, "likewise"
    operands = [x, q, None, scale, None, *rest]
    types = [None if each is None else each.placement.type for each in operands]
    # Otherwise the weights are rounded before they are multiplied.
    exact = dt.promote((scale.placement.type.dtype, dtype)).compute is dtype
    if q.placement.type.dtype not in FACTORS or not exact:
        return None
    attributes = {"dtype": dtype, "transpose_b": turned}
    made, _ = engine.explain(QUANTIZED_MAT_MUL, plan.device, types, attributes)
    if made.how != "native":
        declined.append(call)
        return None
    return Call(made, [*operands], call.outputs, call.site)
