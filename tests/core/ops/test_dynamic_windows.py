"""Windows whose place is data: how starts are given, and under compile, grad and vmap."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

X = np.arange(24, dtype=np.float32).reshape(4, 6)
STARTS = {
    "numbers": lambda: (1, 2),
    "a vector": lambda: tp.asarray([1, 2]),
    "an array": lambda: np.array([1, 2], np.uint8),
    "tensors": lambda: (tp.asarray(1), tp.asarray(2)),
    "a tensor and a number": lambda: [tp.asarray(1, dtype="int64"), 2],
    "NumPy's scalars": lambda: (np.int16(1), np.int16(2)),
}


@pytest.mark.parametrize("starts", STARTS.values(), ids=STARTS)
def test_starts_are_a_vector_or_a_list(starts):
    assert tp.dynamic_slice(X, starts(), (2, 3)).tolist() == X[1:3, 2:5].tolist()
    written = tp.dynamic_update_slice(X, -np.ones((1, 2), np.float32), starts())
    expected = X.copy()
    expected[1, 2:4] = -1
    assert written.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tp.dynamic_slice(X, (0,), (1, 1)), "starts has shape [1], but must have [2]"),
        (lambda: tp.dynamic_slice(X, (0, 0), (1, 7)), "a window of 7 exceeds axis 1 of length 6"),
        (lambda: tp.dynamic_update_slice(X, [1.0], (0, 0)), "update has rank 1, but x has rank 2"),
    ],
)
def test_errors_name_what_does_not_fit(call, words):
    with pytest.raises(tp.errors.ShapeError) as caught:
        call()
    assert words in str(caught.value)


def test_a_program_takes_every_place():
    traced = []

    @tp.compile
    def window(x, at):
        traced.append(at)
        return tp.dynamic_slice(x, (at, 0), (2, 6))

    for at in (0, 1, 2, 3, -4):
        first = min(at % 4, 2)
        assert window(X, tp.asarray(at)).tolist() == X[first : first + 2].tolist()
    assert len(traced) == 1


# The axes of x, update and starts that hold examples; None: all examples have the same.
BATCHES = [(0, 0, 0), (0, 0, None), (None, 0, 0), (0, None, 0), (None, None, 0), (0, None, None)]


@pytest.mark.parametrize("axes", BATCHES)
@pytest.mark.parametrize("nested", [False, True])
def test_vmap_takes_the_windows_of_each_example(axes, nested):
    rng = np.random.default_rng(0)
    lead = (2, 3) if nested else (3,)
    shapes = ((4, 5), (2, 3), (2,))
    operands = [
        rng.integers(-5, 9, (*(lead if axis == 0 else ()), *shape), np.int32)
        for shape, axis in zip(shapes, axes, strict=True)
    ]
    whole = [
        np.broadcast_to(each, (*lead, *each.shape[each.ndim - 2 if n < 2 else -1 :]))
        for n, each in enumerate(operands)
    ]

    def both(x, update, starts):
        return tp.dynamic_slice(x, starts, (1, 2)), tp.dynamic_update_slice(x, update, starts)

    mapped = tp.vmap(both, in_axes=axes)
    mapped = tp.vmap(mapped, in_axes=axes) if nested else mapped
    read, written = mapped(*map(tp.asarray, operands))
    for example in np.ndindex(lead):
        expected = both(*[each[example] for each in whole])
        assert read[example].tolist() == expected[0].tolist()
        assert written[example].tolist() == expected[1].tolist()


def test_derivatives_of_both_modes_agree():
    at = tp.asarray([2, -1])
    update = tp.asarray(np.float32([[5.0, 7.0]]))

    def f(x, update):
        written = tp.dynamic_update_slice(x, update * update, at)
        return tp.sum(tp.square(tp.dynamic_slice(written, at - 1, (3, 4))))

    gradients = tp.grad(f, argnums=(0, 1))(tp.asarray(X), update)
    for n, (gradient, operand) in enumerate(zip(gradients, (X, update.numpy()), strict=True)):
        ones = [np.zeros_like(X), np.zeros((1, 2), np.float32)]
        ones[n] = np.ones_like(operand)
        _, slope = tp.jvp(f, (tp.asarray(X), update), tuple(map(tp.asarray, ones)))
        assert gradient.shape == operand.shape
        assert float(slope) == pytest.approx(float(tp.sum(gradient)))
    assert gradients[1].tolist() == (4 * update.numpy() ** 3).tolist()
    assert gradients[0][2, 4:].tolist() == [0, 0]
