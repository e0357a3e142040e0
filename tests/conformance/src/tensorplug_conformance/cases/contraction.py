"""Cases for Einstein sums."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import contraction as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shapes = tuple[tuple[int, ...], ...]

# (equation, shapes of the operands)
_SUMS: tuple[tuple[str, Shapes], ...] = (
    # one operand
    ("ij->ji", ((2, 3),)),
    ("ij", ((2, 3),)),
    ("ba", ((2, 3),)),
    ("ij->", ((3, 4),)),
    ("ij->i", ((3, 37),)),
    ("->", ((),)),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("ijj->i", ((2, 3, 3),)),
    ("iij->ji", ((3, 3, 2),)),
    ("iii->i", ((3, 3, 3),)),
    ("...ij->...ji", ((2, 1, 2, 3),)),
    # two
    ("ij,jk->ik", ((3, 4), (4, 5))),
    ("ij,jk", ((3, 4), (4, 5))),
    ("ij,jk->ki", ((3, 4), (4, 5))),
    ("ji,kj->ik", ((4, 3), (5, 4))),
    ("bij,bjk->bik", ((2, 3, 4), (2, 4, 2))),
    ("bqhd,bkhd->bhqk", ((2, 3, 2, 4), (2, 5, 2, 4))),
    ("i,i->", ((7,), (7,))),
    ("i,i->i", ((7,), (7,))),
    ("i,j->ji", ((3,), (4,))),
    ("ij,k->jk", ((2, 3), (4,))),
    (",ij->ij", ((), (2, 3))),
    ("ijk,kji->", ((2, 3, 4), (4, 3, 2))),
    ("abc,cbd->da", ((2, 3, 4), (4, 3, 2))),
    ("ii,ij->j", ((3, 3), (3, 2))),
    ("...ij,...jk->...ik", ((2, 1, 3, 4), (3, 4, 2))),
    ("...j,j...", ((2, 3), (3, 2))),
    ("i...,...->i...", ((2, 3, 4), (4,))),
    ("ij,ij->ij", ((1, 3), (2, 1))),
    ("ij,ij->i", ((2, 1), (2, 3))),
    ("abcdef,fedcba->ae", ((2, 1, 2, 1, 2, 3), (3, 2, 1, 2, 1, 2))),
    # more
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
    ("i,ij,j->", ((3,), (3, 4), (4,))),
    ("ij,ik,il->jkl", ((3, 2), (3, 2), (3, 2))),
    ("a,b,c,d,e,f,g->", ((2,), (1,), (2,), (3,), (2,), (1,), (2,))),
    ("...a,...a,...a->...", ((2, 3), (1, 3), (3,))),
    # sizes
    ("ij,jk->ik", ((3, 0), (0, 2))),
    ("ij->j", ((0, 3),)),
    ("ij,jk->ik", ((17, 33), (33, 19))),
    ("i,j->ij", ((257,), (259,))),
    ("ij,kj->ik", ((2, 1031), (3, 1031))),
    ("bij,bjk->bik", ((65, 3, 2), (65, 2, 4))),
    ("bji,bkj->bik", ((129, 2, 3), (129, 4, 2))),
    ("abij,bkj->abik", ((3, 67, 2, 3), (67, 2, 3))),
    ("ij,jk->ik", ((2, 4099), (4099, 3))),
    ("abcde,cfe->fbda", ((2, 3, 2, 4, 3), (2, 5, 3))),
)

_WRONG: tuple[tuple[str, Shapes, type[Exception]], ...] = (
    ("ij,jk->ik", ((2, 3),), ArgumentError),
    ("ij->ik", ((2, 3),), ArgumentError),
    ("ij->ii", ((2, 3),), ArgumentError),
    ("i.j->ij", ((2, 3),), ArgumentError),
    ("...j->j", ((2, 3),), ArgumentError),
    ("ij->i->j", ((2, 3),), ArgumentError),
    ("ij->j", ((2, 3, 4),), ShapeError),
    ("...ijk->", ((2, 3),), ShapeError),
    ("ij,jk->ik", ((2, 3), (4, 2)), ShapeError),
    ("ii->i", ((2, 3),), ShapeError),
)


def _named(equation: str, shapes: Shapes) -> str:
    return f"{equation} of {'; '.join('x'.join(map(str, shape)) for shape in shapes)}"


_ALPHABETS = ("abcdefghij", "zyxwvutsrq", "ABCDEFGHIJ", "qWeRtYuIoP")
_MOST_PRODUCTS = 1 << 12  # of the sizes of all labels
_DRAWS = 2000
_FORM = ("operands", "order", "ellipsis")  # which occur in every combination
_FEW = 6  # labels, which one operand can have


@cache
def _drawn() -> tuple[tuple[str, Shapes], ...]:
    """Return equations that cover all pairs of their properties, drawn at random.

    So do all combinations of ``_FORM``. Properties: the alphabet; how many operands and labels
    there are; whether a label is repeated within each operand, or in one operand alone and not in
    the result; the order of the result, and where an ellipsis is.
    """
    rng = np.random.default_rng(20)
    seen: set[frozenset[object]] = set()
    items = []
    for _ in range(_DRAWS):
        equation, shapes, properties = _one_drawn(rng)
        pairs = {frozenset(pair) for pair in combinations(properties, 2)}
        pairs.add(frozenset(one for one in properties if one[0] in _FORM))
        if pairs - seen:
            seen |= pairs
            items.append((equation, shapes))
    return tuple(dict.fromkeys(items))


def _one_drawn(rng: np.random.Generator) -> tuple[str, Shapes, set[tuple[str, object]]]:
    """Return an equation, the shapes of its operands, and its properties."""
    number = int(rng.integers(len(_ALPHABETS)))
    labels = list(_ALPHABETS[number][: int(rng.choice([2, 4, 6, 10]))])
    sizes = {label: int(rng.integers(2, 4)) for label in labels}
    if np.prod(list(sizes.values())) > _MOST_PRODUCTS:
        sizes = dict.fromkeys(labels, 2)
    count = int(rng.integers(1 if len(labels) <= _FEW else 3, 5))
    terms: list[list[str]] = [[] for _ in range(count)]
    for label in labels:
        chosen = rng.random(count) < (0.1 if len(labels) > _FEW else 0.4)
        chosen[int(rng.integers(count))] = True
        for at in np.flatnonzero(chosen).tolist():
            terms[at].append(label)
    properties: set[tuple[str, object]] = {("alphabet", number), ("operands", count)}
    properties.add(("labels", len(labels)))
    for at, term in enumerate(terms):
        rng.shuffle(term)
        if term and rng.random() < 0.3:
            term.insert(int(rng.integers(len(term) + 1)), term[0])
            properties.add(("repeated in", at))
    result = [label for label in labels if rng.random() < 0.6]
    alone = [at for at, term in enumerate(terms) if _summed_alone(term, terms, result)]
    properties |= {("summed in", at) for at in alone}
    order = int(rng.integers(4))  # as in the alphabet, reversed, rotated, shuffled
    result = [result, result[::-1], result[1:] + result[:1], result][order]
    if order == 3:
        rng.shuffle(result)
    properties.add(("order", (_order_of(result), min(len(result), 3))))
    shapes = [[sizes[label] for label in term] for term in terms]
    if rng.random() < 0.3:
        place = int(rng.integers(3))  # in front, in the middle, behind
        properties.add(("ellipsis", place))
        for term, shape in zip((*terms, result), (*shapes, []), strict=True):
            middle = (0, len(term) // 2, len(term))[place]
            term.insert(middle, "...")
            shape.insert(middle, 2)
    equation = f"{','.join(map(''.join, terms))}->{''.join(result)}"
    return equation, tuple(map(tuple, shapes)), properties


def _order_of(labels: list[str]) -> str:
    ordered = sorted(labels)
    if labels == ordered:
        return "up"
    return "down" if labels == ordered[::-1] else "mixed"


def _summed_alone(term: list[str], terms: list[list[str]], result: list[str]) -> bool:
    """Return whether a label of a term is in no other one, and not in the result."""
    return any(
        label not in result and sum(label in other for other in terms) == 1 for label in term
    )


@cases.of(specs.EINSUM, oracle=oracle.einsum)
def einsum(corpus: Corpus) -> Iterator[Case]:
    """Diagonals, sums, every order of labels, ellipses, multiple operands; integers wrap."""
    for equation, shapes in _SUMS:
        operands = [corpus.ordinary(shape, -1.0, 1.0) for shape in shapes]
        yield Case(_named(equation, shapes), (operands,), {"equation": equation})
    for equation, shapes in _drawn() if corpus.dtype is dt.float32 else ():
        operands = [corpus.ordinary(shape, -1.0, 1.0) for shape in shapes]
        yield Case(_named(equation, shapes), (operands,), {"equation": equation})
    for equation, shapes, error in _WRONG:
        operands = [corpus.small(shape) for shape in shapes]
        name = f"wrong: {_named(equation, shapes)}"
        yield Case(name, (operands,), {"equation": equation}, expected=error)
    for layout in ("transposed", "sliced"):
        operands = [corpus.ordinary((3, 4), -1.0, 1.0), corpus.ordinary((4, 5), -1.0, 1.0)]
        yield Case(layout, (operands,), {"equation": "ij,jk->ki"}, layout=layout)
    if corpus.floating:
        left = corpus.of([[1.0, np.inf], [np.nan, 1.0], [0.0, 2.0]])
        right = corpus.of([[2.0, 1.0], [3.0, 1.0]])
        yield Case("specials", ([left, right],), {"equation": "ij,jk->ik"})


@cases.gradients(specs.EINSUM, "xs")
def sums(corpus: Corpus) -> Iterator[Case]:
    """Labels that are summed over, repeated or broadcast; multiple operands."""
    for equation, shapes in (
        ("ij,jk->ki", ((2, 3), (3, 2))),
        ("bij,bj->b", ((2, 2, 3), (2, 3))),
        ("ij->j", ((2, 3),)),
        ("ii->", ((3, 3),)),
        ("iij->ji", ((2, 2, 2),)),
        ("i,ij,j->", ((2,), (2, 3), (3,))),
        ("...i,ij->...j", ((2, 2), (2, 3))),
        ("ij,ij->j", ((1, 3), (2, 1))),
        ("ii,i->i", ((1, 1), (3,))),
        ("ij,k->k", ((2, 2), (2,))),
        (",i->i", ((), (3,))),
        ("Zx,xB->BZ", ((2, 3), (3, 2))),
        ("zya,Baz->yB", ((2, 2, 3), (2, 3, 2))),
        ("aab,cc,bd->cd", ((2, 2, 3), (2, 2), (3, 2))),
        ("ax,by,cz->cba", ((2, 2), (2, 3), (2, 2))),
        ("Jihgfedcba,jJ->jabcdefghi", ((2, 1, 2, 1, 2, 1, 1, 2, 1, 2), (2, 2))),
        ("ij,jk->ik", ((2, 0), (0, 3))),
        ("ij,j->i", ((0, 3), (3,))),
    ):
        operands = [corpus.ordinary(shape, -1.0, 1.0) for shape in shapes]
        yield Case(_named(equation, shapes), (operands,), {"equation": equation})
