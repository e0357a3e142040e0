"""Permutations and choices, and what draws in rounds may be part of."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from tests.core.ops.random.test_random_sampling import X, key, random
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import CompileError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_categorical_along_another_axis() -> None:
    logits = np.full((3, 2, 4), -inf, np.float32)
    wanted = np.array([[0, 1, 2, 0], [2, 1, 0, 1]])
    np.put_along_axis(logits, wanted[None], 0.0, axis=0)
    expect(random.categorical(key(), logits, axis=0), "int32", (2, 4), wanted)
    expect(
        random.categorical(key(), logits, (5, 2, 4), axis=0),
        "int32",
        (5, 2, 4),
        np.stack([wanted] * 5),
    )
    assert random.categorical(key(), [0, 0, 1]).type == tp.TensorType(tp.int32, ())


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000])
def test_permutation(count: int) -> None:
    found = random.permutation(key(), count)
    assert found.type == tp.TensorType(tp.int32, (count,))
    assert sorted(found.tolist()) == list(range(count))
    assert count < 5 or found.tolist() != random.permutation(key(1), count).tolist()


def test_permutation_of_slices() -> None:
    order = random.permutation(key(), 4).numpy()
    expect(random.permutation(key(), X, axis=1), "float32", (3, 4), X[:, order])
    expect(random.permutation(key(), X, axis=-1), "float32", (3, 4), X[:, order])


def test_choice() -> None:
    expect(
        random.choice(key(), X, (2, 5), axis=1),
        "float32",
        (3, 2, 5),
        X[:, random.choice(key(), 4, (2, 5)).numpy()],
    )
    assert random.choice(key(), X).shape == (4,)
    assert sorted(random.choice(key(), 9, (3, 3), replace=False).numpy().ravel()) == list(range(9))
    some = random.choice(key(), 9, (4,), replace=False).tolist()
    assert len(set(some)) == 4
    expect(random.choice(key(), 3, (6,), p=[0.0, 2.0, 0.0]), "int32", (6,), [1] * 6)
    picked = random.choice(key(), 4, (2,), replace=False, p=[0.0, 1.0, 0.0, 3.0])
    assert sorted(picked.tolist()) == [1, 3]
    weights = tp.asarray([0.0, 2.0, -1.0])
    with tp.debug():
        expect(random.choice(key(), 3, (6,), p=weights), "int32", (6,), [1] * 6)
    expect(random.choice(key(), 0, (0,)), "int32", (0,), [])


def test_draws_in_rounds_are_no_part_of_a_compiled_function() -> None:
    with pytest.raises(CompileError, match="reads the data"):
        tp.compile(lambda at: random.gamma(at, (3,), concentration=2.0))(key())


def test_other_draws_are_a_part_of_a_compiled_function() -> None:
    def draw(at: tp.Tensor) -> tuple[tp.Tensor, ...]:
        return (
            random.permutation(at, 5),
            random.choice(at, 5, (3,), replace=False),
            random.categorical(at, [0.0, 1.0], (3,)),
        )

    for compiled, plain in zip(tp.compile(draw)(key()), draw(key()), strict=True):
        expect(compiled, plain.dtype.name, plain.shape, plain.tolist())
