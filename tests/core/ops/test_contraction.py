"""Einstein sums and products of tensors against loops, and what their errors say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.contraction_order import contraction

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize(
    ("equation", "written_out"),
    [
        ("ij,jk", "ij,jk->ik"),
        ("ba", "ba->ab"),
        (" i j , j k -> i k ", "ij,jk->ik"),
        ("...j,j->...", "aij,j->ai"),
        ("...j,j", "aij,j->ai"),
        ("i...,...->...i", "iab,ab->abi"),
        ("Ba", "Ba->Ba"),
    ],
)
def test_implicit_equations(equation, written_out):
    first = real(2, 3, 3) if "a" in written_out and "." in equation else real(3, 3)
    second = {"...": real(3, 3, salt=1), "j": real(3, salt=1)}.get(
        equation.replace("->", ",").split(",")[1] if "," in equation else "", real(3, 3, salt=1)
    )
    operands = [first, second] if "," in equation else [first]
    got, expected = (tp.einsum(item, *operands) for item in (equation, written_out))
    assert got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("equation", "operands", "error", "message"),
    [
        (1, [real(2)], ArgumentError, "must be a string such as 'ij,jk->ik', got 1"),
        ("ij,jk->ik", [real(2, 3)], ArgumentError, "has terms for 2 operands, got 1"),
        ("ij->ik", [real(2, 3)], ArgumentError, "names 'k', but no operand does"),
        ("ij->ii", [real(2, 3)], ArgumentError, "the result names 'i' twice"),
        ("i.->i", [real(2)], ArgumentError, "contains '.': terms consist of letters"),
        ("...i->i", [real(2, 3)], ArgumentError, "omits the 1 axes of its ellipsis"),
        ("i->i", [real(2, 3)], ShapeError, "term 'i' has 1 labels, but operand 0 is float64[2,3]"),
        ("ij,jk->ik", [real(2, 3), real(2, 3)], ShapeError, "label 'j' has size 3, but operand 1"),
        ("i->", [np.array([True])], DTypeError, "must be one of"),
    ],
)
def test_einsum_refuses(equation, operands, error, message):
    with pytest.raises(error) as caught:
        tp.einsum(equation, *operands)
    assert message in str(caught.value)


def flops(equation, shapes):
    """Return how many multiplications the joins of a plan take."""
    plan = contraction(equation, shapes)
    made = [
        dict(zip(operand.labels, (10,) * len(operand.labels), strict=True))
        for operand in plan.reduced
    ]
    sizes = {}
    for labels, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        sizes.update(zip(labels, shape, strict=True))
    total = 0
    for join in plan.joins:
        both = {*made[join.left], *made[join.right]}
        total += int(np.prod([sizes[label] for label in both]))
        made.append(dict.fromkeys(join.labels))
    return total


def test_the_order_of_a_chain_is_the_cheapest():
    shapes = [(10, 1000), (1000, 5), (5, 500), (500, 2)]
    # (a (b (c d))): 5*500*2 + 1000*5*2 + 10*1000*2
    assert flops("ab,bc,cd,de->ae", shapes) == 5000 + 10000 + 20000


def test_a_long_chain_is_joined_greedily_but_never_all_at_once():
    letters = "abcdefghij"
    terms = [letters[at : at + 2] for at in range(9)]
    assert flops(f"{','.join(terms)}->aj", [(4, 4)] * 9) <= 8 * 4**3


# Products with names of their own -----------------------------------------------------------


@pytest.mark.parametrize(
    ("axes", "equation"),
    [
        (1, "abc,cde->abde"),
        (0, "abc,def->abcdef"),
        (([0, 2], [1, 0]), "abc,cad->bd"),
        (([-1], [0]), "abc,cde->abde"),
    ],
)
def test_tensordot(axes, equation):
    a, b = real(2, 2, 2), real(2, 2, 2, salt=1)
    got = tp.tensordot(a, b, axes=axes)
    expected = np.einsum(equation, a, b)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


def test_dot_and_outer_product():
    assert tp.dot([1, 2], [3, 4]).item() == 11
    assert tp.dot(real(2, 3), real(3)).shape == (2,)
    assert tp.asarray([1, 2]).dot([3, 4]).item() == 11
    assert tp.outer_product([1, 2], [3, 4]).tolist() == [[3, 4], [6, 8]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tp.tensordot(real(2, 3), real(2, 3), axes=1), "have different lengths"),
        (lambda: tp.tensordot(real(2), real(2), axes=2), "axes must be between 0 and 1, got 2"),
        (
            lambda: tp.tensordot(real(2), real(2), axes=([0], [0, 1])),
            "as many axes of x1 as of x2",
        ),
        (lambda: tp.vecdot(real(2), real(3)), "the vectors have different lengths"),
        (lambda: tp.vecdot(real(2), real(2), axis=1), "axis 1 is out of range"),
        (
            lambda: tp.dot(real(2, 2, 2), real(2)),
            "dot: the operands must have rank 1 or 2, got float64[2,2,2]",
        ),
        (lambda: tp.outer_product(real(2, 2), real(2)), "must be vectors, got float64[2,2]"),
    ],
)
def test_products_refuse(call, message):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert message in str(caught.value)
