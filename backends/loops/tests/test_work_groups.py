"""Work-groups: arrays that work-items share, and barriers, in the dialects that have them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorplug.plugin import (
    BackendUnavailableError,
    Group,
    GroupInput,
    GroupOutput,
    Reduction,
    TensorType,
)
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops import native
from tensorplug_loops.dialects import c, opencl_c
from tensorplug_loops.schedule import Launch, plan
from tensorplug_loops.schedule.forms import choose_team
from tensorplug_loops.statements import (
    Array,
    Assign,
    Barrier,
    Declare,
    If,
    Kernel,
    Let,
    Loop,
    Number,
    Shared,
    Store,
    item,
    load,
    member,
    variable,
)

F, SIZE = dt.float32, 32


def number(value):
    return ex.constant(value, dt.int64)


def running_maxima():
    """Return a kernel of rows of ``n`` times SIZE elements: of each tile, and the tiles before."""
    at = variable("row") * variable("n") + variable("tile") * SIZE
    own, before, seen = variable("own", F), variable("before", F), variable("seen", F)

    def larger(a, b):
        return ex.where(ex.apply("less", a, b), b, a)

    scan = []
    for apart in (1, 2, 4, 8, 16):
        start = member() - apart
        reaches = ex.apply("less_equal", number(0), start)
        scan += [
            If(reaches, (Assign("seen", larger(seen, load("held", F, start))),)),
            Barrier(),
            Store("held", member(), seen),
            Barrier(),
        ]
    tile = (
        Let("own", load("x", F, at + member())),
        Declare("seen", larger(own, before)),
        Store("held", member(), seen),
        Barrier(),
        *scan,
        Store("y", at + member(), load("held", F, member())),
        Assign("before", load("held", F, number(SIZE - 1))),
        Barrier(),
    )
    body = (
        Shared("held", F, SIZE),
        Let("row", item()),
        Declare("before", ex.constant(float("-inf"), F)),
        If(
            ex.apply("less", number(0), variable("n")),
            (Loop("tile", number(0), variable("tiles"), tile),),
        ),
    )
    numbers = (Number("n"), Number("tiles"))
    return Kernel("maxima", (Array("x", F), Array("y", F, written=True)), numbers, body, SIZE)


def rows():
    x = np.random.default_rng(0).standard_normal((70, 5 * SIZE)).astype(np.float32)
    return x, np.maximum.accumulate(x, 1)


def test_c_runs_work_items_from_barrier_to_barrier():
    x, wanted = rows()
    y = np.empty_like(x)
    kernel = running_maxima()
    function = native.compile_text(c.write(kernel))
    native.run_items(Launch(kernel, (0, 1), (x.shape[1], 5), len(x), 1 << 16), function, [x, y])
    np.testing.assert_array_equal(y, wanted)


def test_opencl():
    backend = pytest.importorskip("tensorplug_opencl.backend")
    try:
        opened = backend.OpenCLBackend.open(None)
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    x, wanted = rows()
    text = opencl_c.write(running_maxima(), "maxima")
    numbers = [np.int64(each) for each in (len(x), x.shape[1], 5)]
    launch = opened.runtime.launch(text, 2, numbers, len(x) * SIZE, group=SIZE)
    y = opened.from_host(np.zeros_like(x))
    launch(opened.from_host(x), y)
    np.testing.assert_array_equal(opened.to_host(y), wanted)
    opened.close()


@pytest.mark.parametrize("op", ["sum", "max", "prod"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5003,), 0), ((3, 700), 1), ((700, 33), 0), ((2, 300, 5), 1)]
)
def test_scans_in_parts(op, shape, axis):
    """Where neighbours run side by side, parts are reduced, and scanned from what lies before."""
    dtype = dt.int32 if op == "prod" else F
    type_, whole = TensorType(dtype, shape), (True,) * len(shape)
    scan = Reduction(
        op, ex.parameter(0, dtype), tuple(at == axis for at in range(len(shape))), True
    )
    out = GroupOutput(ex.parameter(1, dtype), type_, whole)
    group = Group("scan", shape, (GroupInput(type_, whole),), (scan,), (out,))
    machine = replace(c.MACHINE, neighbours=True, group_size=4, cores=2)
    assert len(plan(group, machine).launches) > 2
    x = (np.random.default_rng(1).standard_normal(shape) * 4).astype(dtype.numpy)
    x = x | 1 if op == "prod" else x
    (found,), (wanted,) = native.compile_group(group, machine=machine)(x), interpreter(group)(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("team", "rows", "length", "members"),
    [
        (0, 3, 4096, 256),
        (0, 3, 256, 32),
        (0, 1 << 16, 64, 32),
        (8, 3, 64, 8),
        (8, 1 << 16, 64, 1),
        (8, 1 << 16, 4096, 8),
        (8, 3, 4096, 8),
        (8, 3, 1 << 17, 8),
        (8, 3, 1 << 24, 8),
    ],
)
def test_few_share_a_row_where_the_processor_acts_as_a_gpu(team, rows, length, members):
    """But for very long rows, since Mesa's processor ends loops of 65,536 steps.

    Of many short rows, a work-item takes one.
    """
    machine = replace(c.MACHINE, neighbours=True, group_size=256, team=team)
    assert choose_team((rows, length), (False, True), machine, runs=False) == (members, 0)
