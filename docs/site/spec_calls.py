"""Calls of a kernel that the suite makes, and what they show: the dtypes of outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from spec_texts import DTYPES

from tensorplug.plugin import DType, KernelSpec, TensorType, dtypes, errors
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_ORDER = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4)),
    *("float4_e2m1fn", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    "float8_e8m0fnu",
]


@dataclass(frozen=True)
class Call:
    """One resolved call: the inputs of a kernel and the types of its outputs."""

    given: Mapping[str, Any]
    types: list[Any]
    attributes: dict[str, Any]
    outputs: tuple[TensorType, ...]


@cache
def calls(spec: KernelSpec) -> list[Call]:
    """Return the suite's calls of a kernel that succeed, resolved; the best example first."""
    entry = entries()[spec.name]
    preferred = (dtypes.float32, dtypes.int32, *entry.dtypes)
    dtype = next(dtype for dtype in preferred if dtype in entry.dtypes)
    found = []
    for case in entry.generate(Corpus(dtype, 0, spec.name)):
        call = None if case.refused else _resolved(spec, case.types, case.attributes)
        if call is not None:
            found.append((_awkwardness(call), len(found), call))
    return [call for *_, call in sorted(found, key=lambda item: item[:2])]


def _resolved(spec: KernelSpec, types: list[Any], attributes: Mapping[str, Any]) -> Call | None:
    """Return a call as a kernel sees it; None where the spec refuses it."""
    try:
        common = spec.promoted(types)
        seen = [
            _with_dtype(type_, common) if name in spec.promote and common else type_
            for name, type_ in zip(spec.input_names, types, strict=True)
        ]
        return Call(attributes, seen, *spec.resolve(seen, attributes))
    except (errors.ArgumentError, errors.DTypeError):
        return None


def _awkwardness(call: Call) -> tuple[int, int]:
    """Return how little a call explains: tiny and huge tensors and bare defaults say little."""
    members = _members(call.types)
    shapes = [type_.shape for type_ in members] + [out.shape for out in call.outputs]
    odd = any(0 in shape or max(shape, default=0) > 99 or len(shape) > 5 for shape in shapes)
    tiny = bool(members) and all(type_.size == 1 for type_ in members)
    absent = sum(type_ is None for type_ in call.types)
    flat = bool(call.given) and max((len(shape) for shape in shapes), default=2) < 2
    return odd + tiny, absent + flat - len(call.given) - min(len(members), 3)


def _members(types: list[Any]) -> list[TensorType]:
    return [
        member
        for type_ in types
        if type_ is not None
        for member in (type_ if isinstance(type_, list) else [type_])
    ]


def _with_dtype(type_: Any, dtype: DType) -> Any:
    if isinstance(type_, list):
        return [_with_dtype(member, dtype) for member in type_]
    return None if type_ is None else TensorType(dtype, type_.shape)


@dataclass(frozen=True)
class Observation:
    """The dtype of one output beside those of the inputs and attributes."""

    sources: dict[str, DType]
    output: DType


def dtype_text(spec: KernelSpec, at: int) -> str:
    """Return how the dtype of an output follows, found by trying every dtype of every input."""
    if spec.name in DTYPES:
        return DTYPES[spec.name]
    observations = list(_observations(spec, at))
    found = {observation.output for observation in observations}
    names = sorted({name for observation in observations for name in observation.sources})
    ordered = [name for name in (*spec.input_names, *spec.attributes) if name in names]
    if len(found) == 1:
        return next(iter(found)).name
    for name in ordered:
        if all(
            observation.output is observation.sources.get(name) for observation in observations
        ):
            together = len(spec.promote) > 1 and name in spec.promote
            if name in spec.attributes:
                return f"`{name}`"
            return "the promoted one" if together else f"that of `{name}`"
    for name in ordered:
        pairs = {
            (observation.sources[name], observation.output)
            for observation in observations
            if name in observation.sources
        }
        if len({source for source, _ in pairs}) == len(pairs):
            return _mapping(name, dict(pairs))
    return ""


def _mapping(name: str, pairs: dict[DType, DType]) -> str:
    """Return a function of one dtype as text: what changes, then what stays."""
    changed = {source: output for source, output in pairs.items() if source is not output}
    parts = [
        f"{result} for {listed(source for source, output in changed.items() if output is result)}"
        for result in sorted(set(changed.values()), key=lambda dtype: dtype.name)
    ]
    return "; ".join([*parts, *[f"that of `{name}` otherwise"] * (len(changed) < len(pairs))])


def _observations(spec: KernelSpec, at: int) -> Iterator[Observation]:
    groups: list[tuple[str, ...]] = [spec.promote] if spec.promote else []
    groups += [(name,) for name in spec.input_names if name not in spec.promote]
    for call in calls(spec)[:12]:
        for group in groups:
            allowed = frozenset.intersection(*(spec.accepted(name) for name in group))
            for dtype in sorted(allowed, key=lambda dtype: dtype.name):
                types = [
                    _with_dtype(type_, dtype) if name in group else type_
                    for name, type_ in zip(spec.input_names, call.types, strict=True)
                ]
                yield from _observed(spec, at, _resolved(spec, types, call.given))
        for name in spec.attributes:
            if isinstance(call.attributes[name], DType):
                for dtype in sorted(dtypes.ANY, key=lambda dtype: dtype.name):
                    attributes = {**call.given, name: dtype}
                    yield from _observed(spec, at, _resolved(spec, call.types, attributes))


def _observed(spec: KernelSpec, at: int, call: Call | None) -> Iterator[Observation]:
    if call is None or at >= len(call.outputs):
        return
    sources = {
        name: members[0].dtype
        for name, type_ in zip(spec.input_names, call.types, strict=True)
        if (members := _members([type_]))
    }
    sources |= {name: value for name, value in call.attributes.items() if isinstance(value, DType)}
    yield Observation(sources, call.outputs[at].dtype)


def listed(group: Iterable[DType]) -> str:
    return ", ".join(sorted((dtype.name for dtype in group), key=_ORDER.index))
