"""What a spec must say of its edges, found in the suite's cases: which kernels, and which case.

Nothing here knows a kernel by name, but for what TensorFlow's names say: what divides, shifts,
and reads bits.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorplug.plugin import DType, KernelSpec, OutOfRangeError, dtypes, errors
from tensorplug_conformance.case import Relation, flat, mapped
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.variants.histories import is_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry

_DTYPES = (dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.string)
_SMALL = 4096  # elements: larger cases ask how work is divided
_TELLING = re.compile(
    "edges|special|ties|out of range|beyond|too deep|absent|from the end|negative|"
    "empty axis|^nothing"
)
_FURTHER = 100_003  # a prime: the remainder of no size
_FAR = 1e6  # of larger ones, even products of finite numbers are infinite


class Asked(NamedTuple):
    """A case of a kernel, and how the suite answers it."""

    entry: CaseEntry
    dtype: DType
    case: Case

    @property
    def spec(self) -> KernelSpec:
        return self.entry.spec

    @property
    def named(self) -> dict[str, list[Array]]:
        """The arrays of each input."""
        return {
            name: flat([operand])
            for name, operand in zip(self.spec.input_names, self.case.inputs, strict=True)
        }

    @property
    def data(self) -> list[Array]:
        """The arrays that are no indices."""
        named = self.named.items()
        return [x for name, arrays in named if not is_index(self.spec, name) for x in arrays]

    def right(self, inputs: Any = None) -> list[Array]:
        """Return what is right for these inputs, by default for the case's own."""
        answer: Any = self.case.expected if inputs is None else None
        if answer is None:
            answer = self.entry.answered(inputs or self.case.inputs, self.case.attributes)
        if isinstance(answer, Relation | type):
            return []
        outputs = answer if isinstance(answer, tuple) else (answer,)
        return [np.asarray(getattr(output, "value", output)) for output in outputs]

    def resolved(self) -> Any:
        """Return the attributes and output types of the call; None if the spec refuses it."""
        try:
            return self.spec.resolve(self.case.types, self.case.attributes)
        except errors.TensorplugError:
            return None


# Whether a case asks -----------------------------------------------------------------------


def _by_zero(asked: Asked) -> bool:
    divides = re.search("Div|Mod|Reciprocal|Rsqrt", asked.spec.name)
    return bool(divides) and not asked.case.refused and bool(np.any(asked.data[-1] == 0))


def _undefined(asked: Asked) -> bool:
    """Finite numbers, none of them large, give none."""
    floats = [x for x in asked.data if x.dtype.kind == "f"]
    if not asked.spec.elementwise or not floats or asked.case.refused or _by_zero(asked):
        return False
    with np.errstate(all="ignore"):
        usual = np.all([np.abs(x) < _FAR for x in np.broadcast_arrays(*floats)], axis=0)
        (right,) = asked.right()
        lost = ~np.isfinite(right) if right.dtype.kind in "fc" else np.zeros(right.shape)
    return usual.shape == lost.shape and bool(np.any(usual & (lost != 0)))


def _does_not_fit(asked: Asked) -> bool:
    """A conversion; Bitcast reads bits."""
    if asked.spec.name == "Bitcast" or asked.case.refused:
        return False
    resolved = asked.resolved()
    for to in resolved[0].values() if resolved else ():
        if isinstance(to, DType) and to in dtypes.INTEGER:
            bounds = np.iinfo(to.numpy)
            numbers = [x for x in asked.data if x.dtype.kind in "fiu"]
            return any(np.any(~((x >= bounds.min) & (x <= bounds.max))) for x in numbers)
    return False


def _too_far(asked: Asked) -> bool:
    if not asked.spec.name.endswith("Shift") or asked.case.refused:
        return False
    by = asked.data[-1]
    return bool(np.any((by < 0) | (by >= 8 * by.dtype.itemsize)))


def _has_nan(asked: Asked) -> bool:
    floats = [x for x in asked.data if x.dtype.kind == "f"]
    return not asked.case.refused and any(np.any(np.isnan(x)) for x in floats)


def _has_equals(asked: Asked) -> bool:
    return not asked.case.refused and any(len(np.unique(x)) < x.size for x in asked.data[:1])


def _of_nothing(asked: Asked) -> bool:
    """There is no element, and yet a result, or an error."""
    if not asked.data or any(x.size for x in asked.data):
        return False
    return asked.case.refused or any(x.size for x in asked.right())


def _refuses_index(asked: Asked) -> bool:
    return asked.case.refusal is not None or asked.case.expected is OutOfRangeError


def _out_of_range(asked: Asked) -> bool:
    return _refuses_index(asked) or _is_ignored(asked)


def _negative(asked: Asked) -> bool:
    return any(
        np.any(x < 0)
        for name, arrays in asked.named.items()
        if is_index(asked.spec, name) and not asked.case.refused
        for x in arrays
        if x.dtype.kind == "i"
    )


def _is_ignored(asked: Asked) -> bool:
    """Return whether an index matters, and can yet move further away without a change."""
    inputs = list(asked.case.inputs)
    for at, name in enumerate(asked.spec.input_names):
        x: Any = inputs[at]
        if name not in _places(asked.spec) or asked.case.refused or not x.size:
            continue
        found = []
        for place in (int(x.max()) + _FURTHER, 0):
            moved = x.astype(np.int64)
            moved.flat[moved.argmax()] = place
            found.append(_answers_alike(asked, [*inputs[:at], moved, *inputs[at + 1 :]]))
        if found == [True, False]:
            return True
    return False


def _answers_alike(asked: Asked, inputs: list[Any]) -> bool:
    try:
        return all(map(np.array_equal, asked.right(inputs), asked.right()))
    except (LookupError, ValueError):
        return False


def _places(spec: KernelSpec) -> list[str]:
    """Return the inputs that hold indices; sizes and splits are none."""
    sizes = re.compile("shape|splits|partition|lengths|s[01]$")
    return [name for name in spec.input_names if is_index(spec, name) and not sizes.search(name)]


def _refuses_values(asked: Asked) -> bool:
    """The call must raise, although the spec takes its types."""
    refused = isinstance(asked.case.expected, type) and not _refuses_index(asked)
    return refused and asked.resolved() is not None


# Which kernels must answer -----------------------------------------------------------------


@cache
def _orders(spec: KernelSpec) -> bool:
    """Return whether a kernel orders: increasing functions keep what it finds, a minus does not.

    Of a position, an increasing function of all floats changes nothing; of a value it gives the
    function of it. That is so for what moves elements as well, also where the function decreases.
    """
    accepted = frozenset().union(*map(spec.accepted, spec.input_names))
    if accepted & dtypes.COMPLEX:  # which have no order
        return False
    kept, turned = [], []
    for asked in _small(entries()[spec.name], dtypes.float32):
        floats = [x for x in asked.data if x.dtype.kind == "f"]
        few = asked.case.refused or sum(x.size for x in floats) < 6
        if not few and all(np.all(np.isfinite(x)) for x in floats):
            kept.append(_follows(asked, _increased))
            turned.append(_follows(asked, np.negative))
    return sum(kept) > 0.8 * len(kept) > 0 and not all(turned)


def _increased(x: Array) -> Array:
    return x + x * np.abs(x, dtype=np.float64)


def _follows(asked: Asked, function: Callable[[Array], Array]) -> bool:
    def moved(x: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(function(x), x.dtype) if x.dtype.kind == "f" else x

    inputs = [mapped(moved, operand) for operand in asked.case.inputs]
    try:
        pairs = zip(asked.right(), asked.right(inputs), strict=True)
    except (LookupError, ValueError, np.linalg.LinAlgError):
        return False
    return all(
        before.shape == after.shape and np.allclose(moved(before), after, rtol=1e-3)
        for before, after in pairs
    )


def _any(_spec: KernelSpec) -> bool:
    return True


@cache
def _finds(spec: KernelSpec) -> bool:
    """Return whether a kernel that orders gives positions."""
    resolved = (asked.resolved() for asked in _small(entries()[spec.name], dtypes.float32))
    outputs = next((call[1] for call in resolved if call), ())
    return any(out.dtype in dtypes.INTEGER for out in outputs) and _orders(spec)


class Question(NamedTuple):
    """What happens at an edge.

    ``asks``: whether a case asks. ``concerns``: whether a kernel with such a case must say.
    """

    asks: Callable[[Asked], bool]
    concerns: Callable[[KernelSpec], bool] = _any


QUESTIONS: dict[str, Question] = {
    "division by 0": Question(_by_zero),
    "outside of the domain": Question(_undefined),
    "numbers that do not fit": Question(_does_not_fit),
    "shifts too far": Question(_too_far),
    "NaN": Question(_has_nan, _orders),
    "ties": Question(_has_equals, _finds),
    "no elements": Question(_of_nothing),
    "indices out of range": Question(_out_of_range),
    "negative indices": Question(_negative),
    "refused values": Question(_refuses_values),
}


def _small(entry: CaseEntry, dtype: DType) -> Iterator[Asked]:
    if dtype in entry.dtypes:
        cases = entry.generate(Corpus(dtype, 0, entry.spec.name))
        for case in sorted(cases, key=lambda case: not _TELLING.search(case.id)):
            if sum(x.size for x in flat(case.inputs)) < _SMALL and not (case.period or case.light):
                yield Asked(entry, dtype, case)


@cache
def asking(spec: KernelSpec) -> dict[str, Asked]:
    """Return for each question that cases of a kernel ask the first such case."""
    entry, found = entries()[spec.name], {}
    for dtype in _DTYPES:
        for asked in _small(entry, dtype):
            for name in QUESTIONS.keys() - found:
                if QUESTIONS[name].asks(asked):
                    found[name] = asked
    return {name: found[name] for name in QUESTIONS if name in found}


def owed(spec: KernelSpec) -> set[str]:
    """Return the questions that a kernel must answer."""
    return {name for name in asking(spec) if QUESTIONS[name].concerns(spec)}
