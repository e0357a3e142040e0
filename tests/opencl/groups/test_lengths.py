"""Sizes are arguments: a new length builds no program and writes no text."""

from __future__ import annotations

import math

import numpy as np

import tensorplug as tp
from tensorplug.dispatch.context import use_context
from tensorplug_opencl.codegen import templates

WIDTH = 64
LENGTHS = range(20, 220)
CLASSES = 6  # of sizes: lanes of short rows, sides of tiles and panels


def weights(rng, *shape):
    return tp.asarray((rng.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32))


def attend(x, wide, narrow):
    """Return an attention block: projections, attention, an MLP, layer norms and residuals."""
    normal = tp.nn.layer_norm(x)
    scores = tp.matmul(tp.matmul(normal, wide[0]), tp.matrix_transpose(tp.matmul(normal, wide[1])))
    attended = tp.matmul(tp.nn.softmax(scores / math.sqrt(WIDTH)), tp.matmul(normal, wide[2]))
    x = x + tp.matmul(attended, wide[3])
    return x + tp.matmul(tp.nn.gelu(tp.matmul(tp.nn.layer_norm(x), narrow[0])), narrow[1])


def test_an_attention_block_of_two_hundred_lengths(core_context, monkeypatch):
    rng = np.random.default_rng(0)
    written = []
    write = templates.write_program

    def noted(title, *args, **options):
        written.append(title)
        return write(title, *args, **options)

    with use_context(core_context) as context:
        runtime = context.device.backend.runtime
        wide = [weights(rng, WIDTH, WIDTH) for _ in range(4)]
        narrow = [weights(rng, WIDTH, 4 * WIDTH), weights(rng, 4 * WIDTH, WIDTH)]
        attend(weights(rng, 3, LENGTHS[0] - 1, WIDTH), wide, narrow)
        monkeypatch.setattr(templates, "write_program", noted)
        before = len(runtime.programs)
        for length in LENGTHS:
            attend(weights(rng, 3, length, WIDTH), wide, narrow)
        runtime.synchronize()
    assert len(written) <= CLASSES
    assert len(runtime.programs) - before <= CLASSES


def test_a_sum_of_any_length_is_one_program(core_context):
    with use_context(core_context) as context:
        runtime = context.device.backend.runtime
        before = len(runtime.programs)
        for length in (2, 3, 15, 16, 17, 1000, 5000):
            x = np.arange(length, dtype=np.float32)
            np.testing.assert_array_equal((tp.asarray(x) + tp.asarray(x)).numpy(), x + x)
        assert len(runtime.programs) - before <= 1
