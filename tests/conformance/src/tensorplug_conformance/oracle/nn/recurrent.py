"""References for recurrent layers and their gradients, one step after the other.

Every number carries a bound on the sum of its rounding errors and of those it inherits (running
error analysis: Higham, "Accuracy and stability of numerical algorithms", section 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array


@dataclass(frozen=True, eq=False)
class _Number:
    """Exact numbers, bounds on a kernel's errors in them, and its unit roundoff."""

    value: Array
    error: Array
    eps: np.longdouble

    def _of(self, value: Array, error: Array, roundings: float = 1) -> _Number:
        """Return a result with the errors of its operands and some roundings of its own."""
        total = error + roundings * self.eps * np.abs(value)
        return _Number(value, np.where(np.isfinite(value), total, 0), self.eps)

    def __add__(self, other: _Number) -> _Number:
        return self._of(self.value + other.value, self.error + other.error)

    def __sub__(self, other: _Number) -> _Number:
        return self._of(self.value - other.value, self.error + other.error)

    def __mul__(self, other: _Number) -> _Number:
        a, b = np.abs(self.value), np.abs(other.value)
        error = _times(self.error, b) + _times(a, other.error) + self.error * other.error
        return self._of(self.value * other.value, error, 2)

    def __matmul__(self, other: _Number) -> _Number:
        a, b = np.abs(self.value), np.abs(other.value)
        own = a @ b * self.eps * (levels(a.shape[-1]) + 2)
        error = self.error @ b + a @ other.error + self.error @ other.error + own
        return self._of(self.value @ other.value, error)

    def rest(self) -> _Number:
        """Return 1 minus this; here, too, the difference is rounded."""
        return self._of(1 - self.value, self.error + finfo(self.value.dtype).eps)

    def sigmoid(self) -> _Number:
        y = np.exp(-np.logaddexp(0, -self.value))
        slope = np.minimum(0.25, y * (1 - y) + self.error)
        return self._of(y, _times(slope, self.error), 8)

    def tanh(self) -> _Number:
        y = np.tanh(self.value)
        slope = np.minimum(1, 1 - y * y + 2 * self.error)
        return self._of(y, _times(slope, self.error), 8)

    def parts(self, count: int) -> list[_Number]:
        """Return the parts of the last axis."""
        values = np.split(self.value, count, axis=-1)
        errors = np.split(self.error, count, axis=-1)
        return [_Number(v, e, self.eps) for v, e in zip(values, errors, strict=True)]

    def turned(self) -> _Number:
        return _Number(self.value.T, self.error.T, self.eps)

    def step(self, t: int) -> _Number:
        return _Number(self.value[:, t], self.error[:, t], self.eps)

    def if_counts(self, counts: Array, other: _Number) -> _Number:
        """Return the rows of sequences that count, and the others of ``other``."""
        return _Number(
            np.where(counts, self.value, other.value),
            np.where(counts, self.error, other.error),
            self.eps,
        )

    def zeros(self) -> _Number:
        return _Number(np.zeros_like(self.value), np.zeros_like(self.value), self.eps)


def _times(a: Array, b: Array) -> Array:
    """Return products in which 0 times infinity is 0."""
    return np.where((a == 0) | (b == 0), 0, a * b)


def _joined(parts: Sequence[_Number]) -> _Number:
    return _Number(
        np.concatenate([part.value for part in parts], axis=-1),
        np.concatenate([part.error for part in parts], axis=-1),
        parts[0].eps,
    )


def _read(operands: Sequence[Array]) -> list[_Number]:
    """Return the operands as exact numbers; float16 is computed in float32."""
    eps = np.longdouble(finfo(np.result_type(operands[0], np.float32)).eps)
    return [_Number(wide(x), np.zeros(x.shape), eps) for x in operands]


def _counts(mask: Array | None, batch: int, time: int) -> Array:
    """Return which steps count, by step, as columns."""
    return np.ones((time, batch, 1), bool) if mask is None else mask.T[..., None]


def _bounded(number: _Number, like: Array) -> Bounded:
    about = finfo(like.dtype)
    bound = number.error + np.abs(number.value) * np.longdouble(about.eps)
    return Bounded(number.value, np.where(np.isfinite(bound), bound, 0) + about.smallest_subnormal)


def _by_sequence(steps: Sequence[_Number], like: Array) -> Bounded:
    """Return what belongs to each step as [batch, time, ...] of the shape of ``like``."""
    if not steps:
        return Bounded(np.zeros(like.shape), np.zeros(like.shape))
    joined = _Number(
        np.stack([step.value for step in steps], axis=1),
        np.stack([step.error for step in steps], axis=1),
        steps[0].eps,
    )
    return _bounded(joined, like)


def _states(gates: Array, h: Array) -> Array:
    """Return an array of the shape and dtype of the states."""
    return np.zeros((*gates.shape[:2], h.shape[1]), gates.dtype)


def _split(inputs: Sequence[Array | None]) -> tuple[list[Array], Array | None]:
    """Return the inputs of a kernel but for the last one, and that one, the mask."""
    *operands, mask = inputs
    return [x for x in operands if x is not None], mask


def lstm(*inputs: Array | None) -> tuple[Bounded, Bounded]:
    """Return the states after each step."""
    operands, mask = _split(inputs)
    with np.errstate(all="ignore"):
        gates, recurrent, h, c = _read(operands)
        batch, time, _ = gates.value.shape
        hidden, cell = [], []
        for t, counts in enumerate(_counts(mask, batch, time)):
            i, f, g, o = (gates.step(t) + h @ recurrent).parts(4)
            new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            new_h = o.sigmoid() * new_c.tanh()
            h, c = new_h.if_counts(counts, h), new_c.if_counts(counts, c)
            hidden.append(h)
            cell.append(c)
        like = _states(operands[0], operands[2])
        return _by_sequence(hidden, like), _by_sequence(cell, like)


def lstm_grad(*inputs: Array | None) -> tuple[Bounded, ...]:
    """Return the cotangents of gates, h and c, for any states."""
    operands, mask = _split(inputs)
    with np.errstate(all="ignore"):
        dhidden, dcell, gates, recurrent, first_h, first_c, hidden, cell = _read(operands)
        batch, time, _ = gates.value.shape
        dh, dc, slopes = first_h.zeros(), first_c.zeros(), []
        counting = _counts(mask, batch, time)
        for t in reversed(range(time)):
            h, c = (hidden.step(t - 1), cell.step(t - 1)) if t else (first_h, first_c)
            i, f, g, o = (gates.step(t) + h @ recurrent).parts(4)
            i, f, g, o, top = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid(), cell.step(t).tanh()
            dh, dc = dh + dhidden.step(t), dc + dcell.step(t)
            inner = dc + dh * o * (top * top).rest()
            dgates = _joined(
                [
                    inner * g * i * i.rest(),
                    inner * c * f * f.rest(),
                    inner * i * (g * g).rest(),
                    dh * top * o * o.rest(),
                ]
            ).if_counts(counting[t], gates.step(t).zeros())
            dh = (dgates @ recurrent.turned()).if_counts(counting[t], dh)
            dc = (inner * f).if_counts(counting[t], dc)
            slopes.append(dgates)
        ends = _bounded(dh, operands[4]), _bounded(dc, operands[5])
        return _by_sequence(slopes[::-1], operands[2]), *ends


def gru(*inputs: Array | None) -> Bounded:
    """Return the state after each step."""
    operands, mask = _split(inputs)
    with np.errstate(all="ignore"):
        gates, recurrent, bias, h = _read(operands)
        batch, time, _ = gates.value.shape
        hidden = []
        for t, counts in enumerate(_counts(mask, batch, time)):
            xr, xz, xn = gates.step(t).parts(3)
            ar, az, an = (h @ recurrent + bias).parts(3)
            z = (xz + az).sigmoid()
            new = (xn + (xr + ar).sigmoid() * an).tanh()
            h = (z.rest() * new + z * h).if_counts(counts, h)
            hidden.append(h)
        return _by_sequence(hidden, _states(operands[0], operands[3]))


def gru_grad(*inputs: Array | None) -> tuple[Bounded, ...]:
    """Return the cotangents of gates, of products and bias, and of h, for any states."""
    operands, mask = _split(inputs)
    with np.errstate(all="ignore"):
        dhidden, gates, recurrent, bias, first, hidden = _read(operands)
        batch, time, _ = gates.value.shape
        dh, slopes = first.zeros(), []
        counting = _counts(mask, batch, time)
        for t in reversed(range(time)):
            h = hidden.step(t - 1) if t else first
            xr, xz, xn = gates.step(t).parts(3)
            ar, az, an = (h @ recurrent + bias).parts(3)
            r, z = (xr + ar).sigmoid(), (xz + az).sigmoid()
            n = (xn + r * an).tanh()
            dh = dh + dhidden.step(t)
            of_n = dh * z.rest() * (n * n).rest()
            both = [of_n * an * r * r.rest(), dh * (h - n) * z * z.rest()]
            none = gates.step(t).zeros()
            dgates = _joined([*both, of_n]).if_counts(counting[t], none)
            dproducts = _joined([*both, of_n * r]).if_counts(counting[t], none)
            dh = (dh * z + dproducts @ recurrent.turned()).if_counts(counting[t], dh)
            slopes.append((dgates, dproducts))
        of_gates = _by_sequence([pair[0] for pair in slopes[::-1]], operands[1])
        of_products = _by_sequence([pair[1] for pair in slopes[::-1]], operands[1])
        return of_gates, of_products, _bounded(dh, operands[4])
