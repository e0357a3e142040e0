"""einops and opt_einsum on tensors."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.einops

from .clients import DTYPES, compare

if TYPE_CHECKING:
    from .clients import Call

einops = pytest.importorskip("einops")
standard = pytest.importorskip("einops.array_api")
opt_einsum = pytest.importorskip("opt_einsum")

tensorplug.einops.enable()
gc.collect()  # einops itself does not hold what was just made

SHARED: dict[str, Call] = {  # ops of either module of einops
    "rearrange": lambda e, g: e.rearrange(g.x, "a (b c) -> c a b", b=2),
    "rearrange a list": lambda e, g: e.rearrange([g.x, g.x + 1], "n a b -> a (b n)"),
    "rearrange new and old axes": lambda e, g: e.rearrange(g.x, "a b -> 1 b () a"),
    "rearrange an ellipsis": lambda e, g: e.rearrange(g.x, "... b -> b ..."),
    **{
        f"reduce {how}": lambda e, g, how=how: e.reduce(g.x, "(a k) b -> a b", how, k=2)
        for how in ("sum", "mean", "min", "max", "prod")
    },
    "reduce all": lambda e, g: e.reduce(g.x, "a b ->", "sum"),
    "reduce any": lambda e, g: e.reduce(g.x > 1, "a b -> b", "any"),
    "reduce all of": lambda e, g: e.reduce(g.x > 0, "a b -> a 1", "all"),
    "repeat": lambda e, g: e.repeat(g.x, "a b -> a (b k) n", k=2, n=3),
    "pack": lambda e, g: e.pack([g.x, g.x[:, 0]], "a *"),
    "unpack": lambda e, g: e.unpack(g.x, [(2,), (), (3,)], "a *"),
}
OWN: dict[str, Call] = {
    "einsum": lambda g: einops.einsum(g.x, g.x, "a b, c b -> a c"),
    "parse_shape": lambda g: einops.parse_shape(g.x, "a _"),
    "repeat of a number": lambda g: einops.repeat(g.array(2.0), " -> a b", a=2, b=3),
}
CONTRACTIONS: dict[str, Call] = {
    "chain": lambda g: opt_einsum.contract("ij,jk,kl->il", g.x, g.x.T, g.x),
    "trace": lambda g: opt_einsum.contract("ii->", g.square),
    "diagonal": lambda g: opt_einsum.contract("ii->i", g.square),
    "outer": lambda g: opt_einsum.contract("i,j->ji", g.v, g.v[:3]),
    "batches": lambda g: opt_einsum.contract("bij,bjk->bik", g.x[None, ...], g.x.T[None, ...]),
    "elementwise": lambda g: opt_einsum.contract("ij,ij->ij", g.x, g.x),
    "an ellipsis": lambda g: opt_einsum.contract("...i,...i->...", g.x, g.x),
    "an expression": lambda g: opt_einsum.contract_expression("ij,jk,k->i", (4, 6), (6, 4), (4,))(
        g.x, g.x.T, g.x[:, 0]
    ),
    "shared intermediates": lambda g: opt_einsum.contract(
        "ab,bc,cd,de->ae", g.square, g.symmetric, g.square, g.symmetric, optimize="optimal"
    ),
}
TABLE = {
    **{
        f"{module.__name__} {name}": lambda g, call=call, module=module: call(module, g)
        for module in (einops, standard)
        for name, call in SHARED.items()
    },
    **{f"einops {name}": call for name, call in OWN.items()},
    **{f"opt_einsum {name}": call for name, call in CONTRACTIONS.items()},
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in TABLE.items()])
def test_as_with_arrays(call, dtype):
    compare(call, dtype)


def test_gradients_flow_through_einops():
    x = tp.asarray(np.arange(6.0).reshape(2, 3))

    def loss(x):
        doubled = einops.repeat(x, "a b -> (a k) b", k=2)
        return einops.einsum(doubled, doubled, "a b, a b ->")

    np.testing.assert_array_equal(tp.grad(loss)(x).numpy(), 4 * x.numpy())


def test_gradients_flow_through_contractions():
    x = tp.asarray(np.arange(6.0).reshape(2, 3))
    slope = tp.grad(lambda x: opt_einsum.contract("ij,kj,k->", x, x, x[:, 0]))(x)
    assert (slope.dtype, slope.shape) == (tp.float64, (2, 3))
    np.testing.assert_allclose(slope.numpy(), _numeric(x.numpy()), rtol=1e-6)


def _numeric(x):
    def value(x):
        return float(np.einsum("ij,kj,k->", x, x, x[:, 0]))

    found = np.empty_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-4
        found[at] = (value(x + step) - value(x - step)) / 2e-4
    return found


def test_unknown_tensor_types_are_refused():
    with pytest.raises(RuntimeError, match="Tensor type unknown to einops"):
        einops.rearrange(object(), "a -> a")


def test_as_numpy():
    x = tp.asarray([[1.0, 2.0]])
    np.testing.assert_array_equal(einops.asnumpy(x), [[1, 2]])
    np.testing.assert_array_equal(standard.asnumpy(x), [[1, 2]])
