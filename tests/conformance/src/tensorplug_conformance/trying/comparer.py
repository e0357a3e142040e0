"""Compares what a case's calls gave: at once, or elsewhere, told as bytes.

A plugin runs in the process that calls it, and may replace what compares there. So a worker only
tells results (``Telling``). Another process, which never imported the plugin, draws the cases
again, and compares (``replayed``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Presentation, Relation, flat
from tensorplug_conformance.comparing.compare import judge, judge_periods, same_bits
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import allows
from tensorplug_conformance.trying import program
from tensorplug_conformance.trying.faults import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.trying.references import Right

_LARGE: Final = 1 << 16  # bytes of an array that is told once, however often it is read
_NEAR: Final = 1e-3  # relative to the largest


class Comparer:
    """Compares the results of one case's calls, and raises WrongResultError.

    Args:
        entry, row, case: what was called.
        right: gives the expected outputs.
        zeros: the dtypes whose subnormal numbers the device flushes.

    """

    def __init__(
        self,
        entry: CaseEntry,
        row: Row,
        case: Case,
        right: Callable[[Case], Right],
        zeros: frozenset[DType],
    ) -> None:
        self.entry = entry
        self.row = row
        self.case = case
        self.worst = 0.0
        self.tolerated = ""  # what is wrong strictly, and within a vendor's bounds
        self._expected = right
        self._zeros = zeros
        self._right: list[Sequence[Array]] = []

    def present(self, presentation: str) -> None:
        """Hear how the case is called from now on."""

    def result(self, results: Sequence[Array], described: Sequence[TensorType]) -> None:
        """Compare results, and what the backend says of them, with the expected outputs.

        Bits that were right once need no second look.
        """
        for right in self._right:
            if all(map(same_bits, right, results)):
                return
        spec, case = self.entry.spec, self.case
        types, references = spec.resolve(case.types, case.attributes)[1], self._expected(case)
        if isinstance(references, Relation):
            _relate(references, types, spec.output_names, results, described)
        else:
            self._compare(references, types, results, described)
        self._right.append(results)

    def _compare(
        self,
        references: Sequence[Any],
        types: Sequence[TensorType],
        results: Sequence[Array],
        described: Sequence[TensorType],
    ) -> None:
        dtype = dt.of(self.row.dtype)
        ulp, labels = tolerances().of(self.entry, dtype), self.entry.spec.output_names
        compare = judge_periods if self.case.period else judge
        for at, (result, real, type_, reference) in enumerate(
            zip(results, described, types, references, strict=True)
        ):
            label = f"output {labels[at]!r}: " if len(labels) > 1 else ""
            if not type_.admits(real):
                raise WrongResultError(
                    f"{label}the backend describes it as {real}, must be {type_}"
                )
            judgement = compare(
                result, type_, reference, ulp=ulp, signed_zero=self.entry.signed_zero
            )
            if not judgement.fault:
                self.worst = max(self.worst, judgement.ulp)
                continue
            fault = label + judgement.fault
            if not allows(self.entry, self.case, at, result, type_, reference, dtype, self._zeros):
                raise WrongResultError(fault)
            self.tolerated = self.tolerated or fault

    def same(self, before: Sequence[Array], now: Sequence[Array], wrong: str) -> None:
        """Compare bits."""
        if not all(same_bits(*pair) for pair in zip(before, now, strict=True)):
            raise WrongResultError(wrong)

    def near(self, before: Sequence[Array], now: Sequence[Array], wrong: str) -> None:
        """Compare but for rounding."""
        if not all(_nearly(*pair) for pair in zip(before, now, strict=True)):
            raise WrongResultError(wrong)

    def unchanged(self, name: str, now: Sequence[Array]) -> None:
        """Compare an input with what it was."""
        known = dict(zip(self.entry.spec.input_names, self.case.inputs, strict=True))
        before = [np.asarray(array) for array in flat([known[name]])]
        self.same(before, now, f"the kernel changed its input {name!r}")

    def close(self) -> None:
        """End: nothing more is to come."""


def _relate(
    relation: Relation,
    types: Sequence[TensorType],
    names: Sequence[str],
    results: Sequence[Array],
    described: Sequence[TensorType],
) -> None:
    """Compare the types of outputs, then the relation between them."""
    for name, real, result, type_ in zip(names, described, results, types, strict=True):
        type_read = TensorType(dt.of(result.dtype), result.shape)
        if not (type_.admits(real) and type_.admits(type_read)):
            raise WrongResultError(
                f"output {name!r}: it is {type_read}, the backend describes it as {real}, "
                f"must be {type_}"
            )
    for name, value, reference in relation.check(*results):
        if value.shape != reference.value.shape:
            raise ValueError(f"{name}: shapes {value.shape} and {reference.value.shape}")
        error = np.atleast_1d(np.abs(value - reference.value))
        allowed = np.broadcast_to(reference.bound, value.shape)
        if not bool(np.all(error <= allowed)):  # a NaN is not
            raise WrongResultError(
                f"{name}: off by {float(np.max(error, initial=0)):.3g}, allowed "
                f"{float(np.max(allowed, initial=0)):.3g}"
            )


def _nearly(x: Array, other: Array) -> bool:
    """Return whether two results agree but for rounding."""
    if same_bits(x, other):
        return True
    if x.shape != other.shape or x.dtype.kind not in "fc":
        return False
    finite = np.isfinite(x) & np.isfinite(other)
    with np.errstate(all="ignore"):
        size = np.max(np.abs(x), initial=0, where=finite)
        close = finite & (np.abs(x - other) <= _NEAR * size)
    return bool(np.all(close | (x == other) | (np.isnan(x) & np.isnan(other))))


class Telling:
    """Has the members of ``Comparer``, compares nothing, and writes all that it is told to a file.

    What it writes is data: a header of JSON, and the bytes of each array once.
    """

    worst = 0.0
    tolerated = ""

    def __init__(self, file: BinaryIO, case: str) -> None:
        self._file = file
        self._case = case
        self._presentation = ""
        self._entries: list[list[Any]] = []
        self._arrays: list[Array] = []
        self._kept: list[Array] = []  # others, whose ids must stay theirs
        self._places: dict[int, int] = {}

    def present(self, presentation: str) -> None:
        """Note how the case is called from now on."""
        self._presentation = presentation

    def result(self, results: Sequence[Array], described: Sequence[TensorType]) -> None:
        """Tell results, and what the backend says of them."""
        types = [[type_.dtype.name, list(type_.shape)] for type_ in described]
        self._tell("result", [results], types)

    def same(self, before: Sequence[Array], now: Sequence[Array], wrong: str) -> None:
        """Tell arrays whose bits must be the same."""
        self._tell("same", [before, now], wrong)

    def near(self, before: Sequence[Array], now: Sequence[Array], wrong: str) -> None:
        """Tell arrays that must agree but for rounding."""
        self._tell("near", [before, now], wrong)

    def unchanged(self, name: str, now: Sequence[Array]) -> None:
        """Tell what an input holds now."""
        self._tell("unchanged", [now], name)

    def _tell(self, what: str, items: Sequence[Sequence[Array]], more: Any) -> None:
        places = [[self._place(array) for array in some] for some in items]
        self._entries.append([what, self._presentation, places, more])

    def _place(self, array: Array) -> int:
        if id(array) not in self._places:
            alike = (at for at, one in enumerate(self._arrays) if _alike(one, array))
            place = self._places[id(array)] = next(alike, len(self._arrays))
            (self._arrays if place == len(self._arrays) else self._kept).append(array)
        return self._places[id(array)]

    def close(self) -> None:
        """Write what was told."""
        types = [[dt.of(array.dtype).name, list(array.shape)] for array in self._arrays]
        header = {"case": self._case, "told": self._entries, "types": types}
        program.send(self._file, header, list(map(_as_bytes, self._arrays)))


def _alike(x: Array, y: Array) -> bool:
    """Return whether two large arrays have the same bits: megabytes are told once.

    Of these the worker's word counts, as it does for what it reads.
    """
    if x.nbytes < _LARGE or x.shape != y.shape or x.dtype != y.dtype or x.dtype.kind == "T":
        return False
    return np.array_equal(_unsigned(x), _unsigned(y))


def _unsigned(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _as_bytes(array: Array) -> Any:
    if array.dtype.kind == "T":
        return json.dumps(array.tolist()).encode()
    return _unsigned(array).data


def array_of(type_: Sequence[Any], blob: bytes | bytearray) -> Array:
    """Return the array of a dtype, shape and bytes that another process told.

    Raises:
        TensorplugError, TypeError, ValueError: they do not fit together.

    """
    name, shape = type_
    dtype = dt.of(name)
    if dtype is dt.string:
        return np.array(json.loads(blob), dtype.numpy).reshape(shape)
    return np.ndarray(shape, dtype.numpy, blob)


def replayed(
    comparer: Comparer, header: Mapping[str, Any], blobs: Sequence[bytes]
) -> tuple[str, Presentation | None, list[str]]:
    """Compare what was told of a case; return what is wrong, how it was called, and how it was
    called before that ("" for the first calls).

    Raises:
        TensorplugError, LookupError, TypeError, ValueError: nothing of the kind was told.

    """
    arrays = [array_of(*pair) for pair in zip(header["types"], blobs, strict=True)]
    calls: list[str] = []
    for what, presentation, places, more in header["told"]:
        items = [[arrays[place] for place in some] for some in places]
        try:
            if what == "result":
                types = [TensorType(dt.of(name), tuple(shape)) for name, shape in more]
                comparer.result(items[0], types)
                calls.append(presentation)
            elif what == "unchanged":
                comparer.unchanged(more, items[0])
            else:
                before, now = items
                {"same": comparer.same, "near": comparer.near}[what](before, now, str(more))
        except Exception as error:  # noqa: BLE001  # as in the worker, each is the verdict
            how = Presentation.of(presentation) if presentation else None
            told = isinstance(error, WrongResultError)
            return str(error) if told else f"{type(error).__name__}: {error}", how, calls
    return "", None, calls
