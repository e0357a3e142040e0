"""Gradient rules that are wrong."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.contract.owner import Owner
from tensorplug.contract.rule_entries import GradientEntry, cotangent_names
from tensorplug.plugin import TensorplugError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins import catalogue
from tensorplug_conformance.selftest.kinds.kind import chosen
from tensorplug_conformance.selftest.sabotage import Saboteur

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.engine.registry import Handle
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Witness
    from tensorplug_conformance.session import Session


_ORDINARY: Final = ("float32", "float64")
_FAR: Final = 4
_COMPLEX: Final = ("complex64", "complex128")


def saboteurs(entry: CaseEntry) -> Iterator[Saboteur]:
    """Yield the saboteurs for each input that is differentiated."""
    stopped = _stopped(entry)
    for wrt in entry.wrt:
        if wrt in stopped:
            continue
        for kind, dtypes, change, fits in (
            ("gradient off by a thousandth", _ORDINARY, _factor, True),
            ("gradient of the other sign", _ORDINARY, _negated, True),
            ("gradient without dy", _ORDINARY, _without_dy, True),
            ("gradient off on broadcast", _ORDINARY, _doubled, _broadcasts(entry, wrt)),
            ("gradient off far from 0", _ORDINARY, _far_off(wrt), _reaches_far(entry)),
            ("gradient conjugated", _COMPLEX, _conjugated, True),
        ):
            dtype = chosen(entry, dtypes, strict=True)
            if dtype is not None and fits:
                yield Saboteur(
                    kind,
                    entry.spec.name,
                    change,
                    dtype,
                    mode="gradient",
                    detail=wrt,
                    demanded=kind == "gradient off on broadcast",
                )


@cache
def _stops() -> frozenset[tuple[str, str]]:
    """Return the kernels and inputs whose gradient is stopped."""
    return frozenset(
        (entry.spec.name, entry.wrt)
        for table in catalogue.rules()
        for entry in table
        if isinstance(entry, GradientEntry) and entry.rule is None
    )


def _stopped(entry: CaseEntry) -> frozenset[str]:
    return frozenset(wrt for name, wrt in _stops() if name == entry.spec.name)


def _broadcasts(entry: CaseEntry, wrt: str) -> bool:
    """Return whether the input may be stretched to the shape of another."""
    spec = entry.spec
    return wrt in spec.promote and len(spec.promote) > 1 and "Broadcast" in _shape_rule(entry)


def _shape_rule(entry: CaseEntry) -> str:
    """Return "Broadcast" where two inputs of shapes (2, 1) and (3,) make one of (2, 3)."""
    spec = entry.spec
    dtype = entry.dtypes[0]
    if len(spec.inputs) != len(spec.promote) or spec.attributes:
        return ""
    shapes = [(2, 1), (3,), (1,)][: len(spec.inputs)]
    try:
        _, (out, *_) = spec.resolve([TensorType(dtype, shape) for shape in shapes], {})
    except (ValueError, TypeError, TensorplugError):
        return ""
    return "Broadcast" if out.shape == (2, 3) else ""


@dataclass(frozen=True, slots=True)
class RuleCall:
    """One call of a wrong rule: its arguments by name, the right rule, the type of the input."""

    entry: GradientEntry
    arguments: dict[str, Any]
    dys: tuple[str, ...]
    type: Any

    def clean(self, **changed: Any) -> Any:
        """Return the right rule's result, perhaps for other arguments."""
        arguments = {**self.arguments, **changed}
        values = [arguments[name] for name in self.entry.asks]
        rule = self.entry.rule
        assert rule is not None  # only existing rules are replaced
        kinds = {parameter.kind for parameter in inspect.signature(rule).parameters.values()}
        if inspect.Parameter.KEYWORD_ONLY in kinds:
            return rule(**dict(zip(self.entry.asks, values, strict=True)))
        return rule(*values)


def _map_tensors(gradient: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(gradient, list | tuple):
        return [_map_tensors(tensor, change) for tensor in gradient]
    return gradient if gradient is None else change(gradient)


def _factor(call: RuleCall) -> Any:
    return _map_tensors(call.clean(), lambda tensor: tensor * 1.001)


def _negated(call: RuleCall) -> Any:
    return _map_tensors(call.clean(), lambda tensor: -tensor)


def _without_dy(call: RuleCall) -> Any:
    ones = {
        name: _map_tensors(value, tp.ones_like)
        for name, value in call.arguments.items()
        if name in call.dys
    }
    return call.clean(**ones)


def _doubled(call: RuleCall) -> Any:
    """Double broadcast inputs, as does a rule that also sums over their axes."""
    stretched = call.arguments[call.dys[0]].shape != call.type.shape
    return _map_tensors(call.clean(), lambda tensor: tensor * 2 if stretched else tensor)


def _reaches_far(entry: CaseEntry) -> bool:
    """Return whether gradients far from 0 are compared with none but themselves.

    The rule of Atanh has values there alone, where the function has none.
    """
    return not (entry.near_only or entry.cancelled or entry.spec.name == "Atanh")


def _far_off(wrt: str) -> Callable[[RuleCall], Any]:
    def wrong(call: RuleCall) -> Any:
        x, results = call.arguments[wrt], call.clean()
        if isinstance(x, list | tuple) or x is None or results is None:
            return results
        return tp.where(abs(x) > _FAR, results * 1.01, results)

    return wrong


def _conjugated(call: RuleCall) -> Any:
    return _map_tensors(
        call.clean(), lambda tensor: tp.conj(tensor) if tensor.dtype in dt.COMPLEX else tensor
    )


def install_rule(session: Session, saboteur: Saboteur, witness: Witness) -> Handle:
    """Replace the rule for ``saboteur.detail`` by a wrong one, on this session's engine.

    Raises:
        LookupError: there is no rule to replace.

    """
    owned = session.engine.registry.state.gradient(saboteur.kernel, saboteur.detail)
    if owned is None or owned.entry.rule is None:
        raise LookupError(f"{saboteur.kernel} has no gradient rule for {saboteur.detail!r}")
    entry = owned.entry
    dys = cotangent_names(entry.spec)
    asks = (
        *entry.asks,
        *(dy for dy in dys if dy not in entry.asks),
        *((saboteur.detail,) if saboteur.detail not in entry.asks else ()),
        f"{saboteur.detail}_type",
    )

    def rule(*values: Any) -> Any:
        call = RuleCall(entry, dict(zip(asks, values, strict=True)), dys, values[-1])
        results = saboteur.wrong(call)
        witness.compare(_arrays(results), _arrays(call.clean()))
        return results

    wrong = replace(entry, rule=rule, asks=asks, joint=None)
    owner = Owner("saboteur", saboteur.kind)
    return session.engine.registry.add(owner, rules=[wrong], override=True)


def _arrays(gradient: Any) -> list[Any]:
    if isinstance(gradient, list | tuple):
        return [array for one in gradient for array in _arrays(one)]
    return [] if gradient is None else [gradient.numpy()]
