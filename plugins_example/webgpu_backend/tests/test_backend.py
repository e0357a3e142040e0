"""The distribution as the core sees it, and what differs from other devices."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from wgpu.backends.wgpu_native._ffi import ffi

import tensorplug as tp
from tensorplug.plugin import child_processes, specs
from tensorplug.testing import isolated_engine
from tensorplug_loops.schedule import Launch
from tensorplug_webgpu import adapters, exchange, runtime, trial

DISTRIBUTION = "tensorplug-webgpu"


def test_backend_is_listed_with_its_distribution():
    infos = {info.name: info for info in tp.backends()}
    info = infos["webgpu"]
    assert (info.distribution, info.version) == (DISTRIBUTION, version(DISTRIBUTION))


@pytest.mark.parametrize("spec", list(specs), ids=lambda spec: spec.name)
def test_every_kernel_can_run(spec):
    assert tp.explain(spec).how in {"native", "decomposed", "host"}


def test_explanation_shows_the_shader():
    explained = tp.explain("Exp", [np.ones(8, np.float32)], source=True)
    [source] = explained.sources
    assert source.startswith("// Exp\n")
    assert "@compute" in source


@pytest.mark.parametrize("device", ["999", "a-device-that-is-not-there"])
def test_missing_device_is_refused_with_those_found(device):
    first = adapters.name_of(adapters.find()[0])
    with pytest.raises(tp.errors.BackendUnavailableError, match=f"'{device}'") as caught:
        tp.set_backend(f"webgpu:{device}")
    assert first in str(caught.value)


def test_part_of_a_name_chooses_an_adapter():
    found = adapters.find()[0]
    part = adapters.name_of(found).split()[0].upper()
    assert adapters.name_of(adapters.choose(part)) == adapters.name_of(found)


def test_numbers_of_the_trial(monkeypatch):
    """They are those of a driver that is right, and another number is told."""
    adapter = adapters.find()[0]
    sound = trial._compute(adapter)
    assert sound.wrong == ""
    assert (sound.exchanged > 1) is adapters.is_processor(adapter)
    monkeypatch.setattr(trial, "_FLOATS", trial._FLOATS.replace("0.5", "0.25"))
    assert trial._compute(adapter) == ("floats: number 1 is 0.25, must be 0.5", 0)


@pytest.mark.parametrize("name", ["WGPUBufferDescriptor", "WGPUSurfaceDescriptor"])
def test_types_that_are_read_at_once_are_those_of_the_header(name):
    alone = ffi.typeof(f"{name}  *")  # another text, which cffi reads
    assert ffi._parsed_types[f"{name} *"] == (alone, False)


def test_what_a_trial_executes_is_in_its_key():
    code = "import sys, tensorplug_webgpu.trial; print(*sys.modules, sep='\\n')"
    command = [sys.executable, *child_processes.code_arguments(code)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    own = {name.partition(".")[2] for name in loaded if name.startswith("tensorplug_webgpu.")}
    assert own == {Path(file).stem for file in trial._FILES}


def test_groups_of_more_arrays_than_the_adapter_takes_are_run_in_parts(monkeypatch):
    def total(*xs):
        result = xs[0]
        for x in xs[1:]:
            result = tp.maximum(result * 2, x)
        return result

    with isolated_engine("webgpu") as engine:
        monkeypatch.setattr(engine.open("webgpu").backend.runtime, "arrays", 4)
        xs = [np.arange(5000, dtype=np.float32) + number for number in range(9)]
        expected = xs[0]
        for x in xs[1:]:
            expected = np.maximum(expected * 2, x)
        np.testing.assert_array_equal(tp.compile(total)(*xs).numpy(), expected)


def test_figures_of_memory(backend):
    def figures():
        memory = backend.memory()
        return memory["used_bytes"] - used, memory["kept_bytes"]

    tp.trim_memory()
    used = backend.memory()["used_bytes"]
    x = tp.asarray(np.zeros((1000,), np.float32))
    size = backend.allocation(x._buffer)[1]
    assert 4000 <= size <= 4512
    assert figures() == (size, 0)
    y = tp.reshape(x, (10, 100))
    del x
    assert figures() == (size, 0)
    del y
    assert figures() == (0, size)
    x = tp.asarray(np.zeros((1000,), np.float32))
    assert figures() == (size, 0)
    del x
    assert tp.trim_memory() >= size
    assert figures() == (0, 0)


def test_uploads_in_pieces(backend, monkeypatch):
    monkeypatch.setattr(runtime, "_PIECE", 64)
    x = np.arange(1001, dtype=np.int32)
    np.testing.assert_array_equal(tp.asarray(x).numpy(), x)
    assert backend.runtime.pool.most >= 1 << 27


def test_many_threads():
    def work(seed):
        x = np.arange(1 << 10, dtype=np.int32) + seed
        for _ in range(10):
            y = tp.asarray(x) * 3 + seed
            np.testing.assert_array_equal(y.numpy(), x * 3 + seed)
            assert int(tp.sum(y).numpy()) == int((x * 3 + seed).sum())
        return seed

    with ThreadPoolExecutor(8) as pool:
        contexts = [copy_context() for _ in range(16)]
        found = pool.map(lambda context, seed: context.run(work, seed), contexts, range(16))
        assert [*found] == [*range(16)]


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (5,)])
def test_data_survives_the_round_trip(shape, backend):
    for dtype in backend.dtypes:
        array = np.array(np.arange(np.prod(shape)).reshape(shape) % 2, dtype.numpy)
        tensor = tp.asarray(array)
        expected = array.tolist()
        array[...] = np.logical_not(array)  # the tensor must not change
        back = tensor.numpy()
        assert (back.dtype, back.shape) == (dtype.numpy, shape)
        assert back.tolist() == expected


def test_large_buffer_is_refused_with_the_limit(backend):
    limit = backend.runtime.pool.most
    with pytest.raises(tp.errors.BackendMemoryError, match=f"{limit:,}"):
        tp.zeros((limit // 4 + 1,))


def test_many_groups_are_two_rows_of_a_launch():
    size = 65_535 * 64 + 1
    x = tp.ones((size,), dtype=tp.int32) + 1
    assert int(tp.sum(x).numpy()) == 2 * size


@pytest.mark.parametrize(
    ("items", "cost", "steps", "several"),
    [
        (1 << 27, 8, 0, True),
        (1 << 27, 8, 4000, False),
        (1 << 27, 4000, 0, False),
        (64, 8, 0, False),
    ],
)
def test_work_items_take_several_short_items_of_many(items, cost, steps, several, backend):
    launch = Launch(kernel=None, arrays=(), numbers=(), items=items, cost=cost, steps=steps)
    assert (backend.runtime.each(launch) > 1) is several


@pytest.mark.parametrize("size", [1 << 16, (1 << 20) + 37, (1 << 22) - 1])
def test_every_item_is_taken_once(size):
    x = np.arange(size, dtype=np.int32)
    np.testing.assert_array_equal((tp.asarray(x) * 3 + 1).numpy(), x * 3 + 1)


def _flushes():
    return not (tp.asarray(np.float32(1e-40)) * 1.5).numpy()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (5.5, 2.0),
        (-5.5, 2.0),
        (3e38, 7e-38),
        (1e-40, 3e-41),
        (1.0, 1e-42),
        (0.0, 3.0),
        (2.0, float("inf")),
        (float("inf"), 2.0),
        (1.0, 0.0),
        (-0.0, 1.0),
    ],
)
def test_remainder_is_exact(a, b):
    """WGSL's own operator rounds the quotient first."""
    x, y = np.float32(a), np.float32(b)
    with np.errstate(invalid="ignore"):
        expected = np.remainder(x, y)
    least = np.finfo(np.float32).smallest_normal
    if any(0 < abs(number) < least for number in (x, y, expected)) and _flushes():
        pytest.skip("the adapter takes subnormal numbers for 0")
    found = tp.remainder(tp.asarray(x), tp.asarray(y)).numpy()
    np.testing.assert_array_equal(found, expected)
    if not np.isnan(expected):
        assert np.signbit(found) == np.signbit(expected)


def test_half_floats_are_joined(backend):
    """Where one tensor ends, a constant stands for its elements."""
    if tp.float16 not in backend.dtypes:
        pytest.skip("the adapter has no float16")
    x = np.float16([1.5, -2.25, 6e-8])
    np.testing.assert_array_equal(
        tp.concat([tp.asarray(x), tp.asarray(x[:2])]).numpy(), np.concatenate([x, x[:2]])
    )


def test_sums_of_half_floats_at_indices(backend):
    """What they start from is a kernel whose one half float is a constant."""
    if tp.float16 not in backend.dtypes:
        pytest.skip("the adapter has no float16")
    found = tp.run_kernel(
        "ScatterNd", [np.int32([[2], [0], [2]]), np.float16([1, 2, 4])], {"shape": (4,)}
    )
    np.testing.assert_array_equal(found.numpy(), np.float16([2, 0, 5, 0]))


def test_compilers_do_not_take_sums_apart():
    """They may, in WGSL: then large terms cancel, and the small ones between them are lost."""
    x = tp.asarray(np.tile(np.float32([1e8, 1.25, -1e8, 1.0]), 64))
    assert float(tp.sum(x).numpy()) == 64 * 2.25


@pytest.mark.parametrize(
    "block",
    re.findall(
        r"```python\n(.*?)```",
        (Path(__file__).parents[1] / "README.md").read_text("utf-8"),
        re.DOTALL,
    ),
)
def test_readme(block):
    exec(block, {})


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 4, 0, 5), (0, 2)), ((0, 3), 0), ((3, 0), 1), ((0,), 0)]
)
def test_means_of_nothing_are_no_numbers(shape, axis):
    means = tp.mean(tp.zeros(shape, device="webgpu"), axis=axis)
    assert np.isnan(np.asarray(means)).all()


@pytest.mark.parametrize(
    ("pairs", "size"),
    [
        ([(2, 0), (2, 1), (2, 0), (2, 1)], 2),
        ([(2, 0), (2, 0), (2, 1), (2, 1)], 0),  # no neighbours
        ([(2, 0), (2, 1), (1, 0), (1, 0)], 0),  # of different sizes
        ([(1, 0), (1, 0)], 0),
    ],
)
def test_subgroups_of_neighbours_are_known_by_their_numbers(pairs, size):
    assert exchange.size_of(pairs) == size
