"""When something is computed, how often data is read for it, and how far graphs grow."""

from __future__ import annotations

from uuid import uuid4

import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

import tensorplug as tp
import tensorplug_dask
from tensorplug.testing import isolated_engine

ROWS, BLOCKS, FEATURES = 10, 8, 3


class Ran(Callback):
    """Counts the tasks that Dask runs."""

    def __init__(self):
        super().__init__()
        self.tasks = 0

    def _pretask(self, *_asked):
        self.tasks += 1


class Source:
    """A table whose blocks are made when they are read; ``made`` lists them."""

    def __init__(self):
        self.made = []  # a list, to which several threads may append
        blocks = da.zeros((ROWS * BLOCKS, FEATURES), chunks=(ROWS, -1), dtype=np.float32)
        # Dask names an array after what makes it, as far as pickle can tell, and two arrays of one
        # name are the same to it: so each source gets a name of its own.
        self.array = blocks.map_blocks(
            self._made, name=f"source-{uuid4().hex}", meta=np.empty((0, 0), np.float32)
        )
        self.tensor = tensorplug_dask.from_dask(self.array)

    def _made(self, block, block_info=None):
        seed = block_info[0]["chunk-location"][0]
        self.made.append(seed)
        return np.random.default_rng(seed).uniform(-1, 1, block.shape).astype(np.float32)

    @property
    def passes(self):
        """How often all blocks were read, since this was last asked."""
        count = len(self.made) // BLOCKS
        assert sorted(self.made) == sorted([*range(BLOCKS)] * count)
        self.made.clear()
        return count


@pytest.fixture
def source():
    made = Source()
    assert made.tensor.shape == (ROWS * BLOCKS, FEATURES)
    return made


@pytest.fixture
def table(source):
    values = source.array.compute()
    assert source.passes == 1
    return values


def layers(tensor):
    return len(tensorplug_dask.to_dask(tensor).dask.layers)


def loss(w, x):
    return tp.mean(tp.square(tp.tanh(x @ w) - x[:, 0]))


def slope_by_hand(w, x):
    fitted = np.tanh(x @ w)
    return 2 / len(x) * x.T @ ((fitted - x[:, 0]) * (1 - fitted**2))


def test_nothing_runs_before_it_is_read(source, table):
    with Ran() as ran:
        small = tp.exp(tp.asarray([1.0, 2.0])) + 1
        large = tp.sum(source.tensor, axis=0)
        assert (ran.tasks, len(source.made)) == (0, 0)
        np.testing.assert_allclose(small.numpy(), np.exp([1, 2]) + 1, rtol=1e-6)
        assert ran.tasks > 0
        assert not source.made
        np.testing.assert_allclose(large.numpy(), table.astype(float).sum(0), rtol=1e-5)
        assert source.passes == 1


def test_read_results_are_kept(source):
    total = tp.sum(source.tensor)
    assert float(total) == float(total)
    assert float(total * 2) == 2 * float(total)
    assert source.passes == 1


def test_synchronize_computes_small_results_and_leaves_large_ones(source):
    total, doubled = tp.sum(source.tensor), source.tensor * 2
    tp.synchronize()
    assert source.passes == 1
    assert (layers(total), source.made) == (1, [])
    assert layers(doubled) > 1
    assert tp.memory()["dask"].backend == {"pending": 0}


def test_one_pass_computes_all_that_waits_for_the_same_data(source, table):
    smallest, largest, other = (tp.min(source.tensor), tp.max(source.tensor), Source())
    apart = tp.sum(other.tensor)
    assert (float(smallest), float(largest)) == (table.min(), table.max())
    assert (source.passes, other.made) == (1, [])
    assert float(apart) == pytest.approx(table.sum(), abs=1e-4)


def test_data_are_read_again_rather_than_held(source, table):
    """Two passes: while the mean is not known, no block can be dropped if all are to be kept."""
    x = source.tensor
    centred = x - tp.mean(x, axis=0)
    assert source.passes == 1
    covariance = (tp.matmul(centred, centred, transpose_a=True) / (x.shape[0] - 1)).numpy()
    assert source.passes == 1
    np.testing.assert_allclose(covariance, np.cov(table, rowvar=False), rtol=1e-4, atol=1e-6)


def test_a_step_of_training_is_one_pass(source, table):
    step = tp.value_and_grad(loss)
    w, right = tp.zeros(FEATURES), np.zeros(FEATURES)
    for _ in range(4):
        value, slope = step(w, source.tensor)
        w = w - 0.5 * slope
        right = right - 0.5 * slope_by_hand(right, table.astype(float))
        assert float(value) > 0
        assert source.passes == 1
    np.testing.assert_allclose(w.numpy(), right, rtol=1e-4, atol=1e-6)
    assert not source.made


def test_layers_of_the_data_are_not_pending_kernels(monkeypatch, source, table):
    """Each block in a layer of its own, as those of files are: a step is still one pass."""
    monkeypatch.setenv("TENSORPLUG_DASK_MAX_LAYERS", "40")
    blocks = [source.array.blocks[index] * 1 for index in range(BLOCKS)]
    array = da.concatenate(blocks)
    while len(array.dask.layers) <= 40:
        array = array * 1
    with isolated_engine("dask"):
        x = tensorplug_dask.from_dask(array)
        value, slope = tp.value_and_grad(loss)(tp.zeros(FEATURES), x)
        assert not source.made
        np.testing.assert_allclose(
            slope.numpy(), slope_by_hand(np.zeros(FEATURES), table.astype(float)), rtol=1e-4
        )
        assert float(value) == pytest.approx(np.square(table[:, 0]).mean(), rel=1e-5)
    assert source.passes == 1


def test_graphs_do_not_grow_in_training(source):
    step = tp.value_and_grad(loss)
    w, sizes = tp.zeros(FEATURES), []
    for _ in range(5):
        w = w - 0.5 * step(w, source.tensor)[1]
        sizes.append(len(dict(tensorplug_dask.to_dask(w).dask)))
    assert len(set(sizes[1:])) == 1


@pytest.mark.parametrize("limit", [7, 100])
def test_graphs_of_small_results_are_cut(monkeypatch, limit):
    monkeypatch.setenv("TENSORPLUG_DASK_MAX_LAYERS", str(limit))
    with isolated_engine("dask"):
        x, found = tp.asarray([1.0, 2.0]), 0
        for _ in range(250):
            x = x * 0.5 + 1
            found = max(found, layers(x))
        assert limit - 2 <= found <= limit
        np.testing.assert_allclose(x.numpy(), [2, 2], rtol=1e-6)


def test_error_is_raised_for_the_right_tensor():
    x = tp.asarray([1.0, 2.0])
    faulty = tp.gather(x, tp.asarray([7]))
    good = x + 1
    assert good.tolist() == [2, 3]
    with pytest.raises(tp.errors.OutOfRangeError, match="index 7"):
        faulty.numpy()


def test_persist_computes_once_and_keeps(source, table):
    doubled, total = source.tensor * 2, tp.sum(source.tensor)
    tensorplug_dask.persist(doubled, total)
    assert source.passes == 1
    assert tensorplug_dask.to_dask(doubled).numblocks == (BLOCKS, 1)
    np.testing.assert_array_equal(doubled.numpy(), table * 2)
    assert float(tp.sum(doubled)) == pytest.approx(2 * float(total), abs=1e-4)
    assert not source.made
    on_cpu = tp.asarray([1.0]).to("cpu")
    tensorplug_dask.persist(on_cpu)
    assert on_cpu.tolist() == [1]
