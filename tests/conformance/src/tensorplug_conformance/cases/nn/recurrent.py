"""Cases for recurrent layers and their gradient kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug_conformance.case import Bounded, Case
from tensorplug_conformance.oracle.nn import recurrent as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array, Layout, Operand
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


class _Kind(NamedTuple):
    """A kind of call: the sizes of batch, time and units; whether steps are left out."""

    name: str
    batch: int
    time: int
    units: int
    masked: bool = False
    reach: float = 2.0  # of the numbers in gates
    layout: Layout = "dense"
    weight: float = 1.0  # the largest in recurrent

    def mask(self) -> Array | None:
        """Return a mask with padding at the end, in between, everywhere and nowhere."""
        if not self.masked:
            return None
        numbers = np.arange(self.batch * self.time).reshape(self.batch, self.time)
        mask = numbers * 5 % 7 < 4
        mask[1:2] = False
        mask[2:3] = True
        return np.asarray(mask)

    def operands(self, corpus: Corpus, gates: int, states: int) -> list[Array]:
        """Return gates, recurrent, a bias if there are three gates, and the first states."""
        width = gates * self.units
        return [
            corpus.ordinary((self.batch, self.time, width), -self.reach, self.reach),
            corpus.ordinary((self.units, width), -self.weight, self.weight),
            *([corpus.ordinary((width,), -1.0, 1.0)] if gates == 3 else []),
            *(corpus.ordinary((self.batch, self.units), -1.0, 1.0) for _ in range(states)),
        ]


_KINDS = (
    _Kind("sequences", 3, 5, 4),
    _Kind("one sequence", 1, 6, 3),
    _Kind("one step", 4, 1, 3),
    _Kind("one unit", 2, 4, 1),
    _Kind("mask", 5, 6, 3, masked=True),
    _Kind("mask of one step", 4, 1, 2, masked=True),
    _Kind("saturated", 2, 3, 3, reach=40.0),
    _Kind("large", 33, 9, 40, masked=True),
    _Kind("long", 2, 80, 3, weight=0.25),  # so that errors do not grow from step to step
    _Kind("blocks of steps", 70, 11, 31),
    _Kind("no sequences", 0, 3, 2),
    _Kind("no steps", 2, 0, 3),
    _Kind("no units", 2, 3, 0),
    _Kind("transposed", 3, 4, 3, masked=True, layout="transposed"),
    _Kind("sliced", 3, 4, 3, masked=True, layout="sliced"),
)


def _wrong(operands: list[Array]) -> Iterator[Case]:
    """Yield calls of a layer whose operands do not fit."""
    gates, recurrent, *rest = operands
    batch, time, _ = gates.shape
    yield Case("state is missing", (*operands[:-1], None, None), expected=ArgumentError)
    yield Case("gates of rank 2", (gates[0], *operands[1:], None), expected=ShapeError)
    yield Case("weights", (gates, recurrent[:-1], *rest, None), expected=ShapeError)
    yield Case("gates", (gates[..., :-1], recurrent, *rest, None), expected=ShapeError)
    yield Case("state", (*operands[:-1], rest[-1][:-1], None), expected=ShapeError)
    mask = np.ones((batch, time + 1), bool)
    yield Case("mask does not fit", (*operands, mask), expected=ShapeError)


@cases.of(specs.LSTM, oracle=oracle.lstm, grown=False)
def lstm(corpus: Corpus) -> Iterator[Case]:
    for kind in _KINDS:
        operands = kind.operands(corpus, 4, 2)
        yield Case(kind.name, (*operands, kind.mask()), layout=kind.layout)
    yield from _wrong(_KINDS[0].operands(corpus, 4, 2))


@cases.of(specs.GRU, oracle=oracle.gru, grown=False)
def gru(corpus: Corpus) -> Iterator[Case]:
    for kind in _KINDS:
        operands = kind.operands(corpus, 3, 1)
        yield Case(kind.name, (*operands, kind.mask()), layout=kind.layout)
    wrong = _KINDS[0].operands(corpus, 3, 1)
    yield from _wrong(wrong)
    bias = [*wrong[:2], wrong[2][:-1], wrong[3]]
    yield Case("bias", (*bias, None), expected=ShapeError)


def _rounded(states: Bounded, like: Array) -> Array:
    return states.value.astype(like.dtype)


def _later(states: Operand) -> Array:
    """Return states without those of the first step."""
    assert isinstance(states, np.ndarray)
    return states[:, 1:]


def _lstm_grad(kind: _Kind, corpus: Corpus) -> Case:
    """Return the call of the gradient kernel that belongs to a call."""
    operands = kind.operands(corpus, 4, 2)
    states = [_rounded(item, operands[0]) for item in oracle.lstm(*operands, kind.mask())]
    above = [corpus.ordinary(state.shape, -1.0, 1.0) for state in states]
    return Case(kind.name, (*above, *operands, *states, kind.mask()), layout=kind.layout)


def _gru_grad(kind: _Kind, corpus: Corpus) -> Case:
    operands = kind.operands(corpus, 3, 1)
    state = _rounded(oracle.gru(*operands, kind.mask()), operands[0])
    above = corpus.ordinary(state.shape, -1.0, 1.0)
    return Case(kind.name, (above, *operands, state, kind.mask()), layout=kind.layout)


@cases.of(specs.LSTM_GRAD, oracle=oracle.lstm_grad, grown=False)
def lstm_grad(corpus: Corpus) -> Iterator[Case]:
    for kind in _KINDS:
        yield _lstm_grad(kind, corpus)
    *inputs, _ = _lstm_grad(_KINDS[0], corpus).inputs
    yield Case("dhidden", (_later(inputs[0]), *inputs[1:], None), expected=ShapeError)
    yield Case("cell", (*inputs[:-1], _later(inputs[-1]), None), expected=ShapeError)


@cases.of(specs.GRU_GRAD, oracle=oracle.gru_grad, grown=False)
def gru_grad(corpus: Corpus) -> Iterator[Case]:
    for kind in _KINDS:
        yield _gru_grad(kind, corpus)
    *inputs, _ = _gru_grad(_KINDS[0], corpus).inputs
    yield Case("hidden", (*inputs[:-1], _later(inputs[-1]), None), expected=ShapeError)


_POINTS = (
    _Kind("sequences", 2, 3, 2, reach=1.0),
    _Kind("one sequence, one unit", 1, 2, 1, reach=1.0),
    _Kind("mask", 3, 3, 2, masked=True, reach=1.0),
    _Kind("no sequences", 0, 3, 2),
    _Kind("no steps", 2, 0, 2),
    _Kind("no units", 2, 3, 0),
)


@cases.gradients(specs.LSTM, "gates", "recurrent", "h", "c", cancelled=1)
def lstm_points(corpus: Corpus) -> Iterator[Case]:
    for kind in _POINTS:
        yield Case(kind.name, (*kind.operands(corpus, 4, 2), kind.mask()))


@cases.gradients(specs.GRU, "gates", "recurrent", "bias", "h", cancelled=1)
def gru_points(corpus: Corpus) -> Iterator[Case]:
    for kind in _POINTS:
        yield Case(kind.name, (*kind.operands(corpus, 3, 1), kind.mask()))


@cases.gradients(
    specs.LSTM_GRAD,
    *("dhidden", "dcell", "gates", "recurrent", "h", "c", "hidden", "cell"),
    cancelled=1,
)
def lstm_grad_points(corpus: Corpus) -> Iterator[Case]:
    for kind in _POINTS:
        yield _lstm_grad(kind, corpus)


@cases.gradients(
    specs.GRU_GRAD, "dhidden", "gates", "recurrent", "bias", "h", "hidden", cancelled=1
)
def gru_grad_points(corpus: Corpus) -> Iterator[Case]:
    for kind in _POINTS:
        yield _gru_grad(kind, corpus)
