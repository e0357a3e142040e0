"""The simulated plan against graphs that are planned by hand, and graphs as they are recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import tensorplug as tp
from tensorplug_dask import from_dask

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    """Let modules of the examples be imported, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in {path.stem for path in EXAMPLES.glob("*.py")} & set(sys.modules):
        del sys.modules[name]


@pytest.fixture
def simulation():
    import simulation

    return simulation


def graph(simulation, **inputs):
    """Return tasks of a second each, whose results have 100 bytes."""
    return {key: simulation.Task(1.0, 100, tuple(names)) for key, names in inputs.items()}


INDEPENDENT = dict.fromkeys("abcdefgh", "")
CHAIN = {"a": "", "b": "a", "c": "b", "d": "c", "e": "d"}
TREE = {"a": "", "b": "", "c": "", "d": "", "e": "ab", "f": "cd", "g": "ef"}
# The chain comes last, but has to be begun first.
CHAIN_BESIDE_OTHERS = {"x": "", "y": "", "z": "", "a": "", "b": "a", "c": "b"}


@pytest.mark.parametrize(
    ("inputs", "seconds"),
    [
        (INDEPENDENT, (8, 4, 3, 2)),
        (CHAIN, (5, 5, 5, 5)),
        (TREE, (7, 4, 4, 3)),
        (CHAIN_BESIDE_OTHERS, (6, 3, 3, 3)),
        ({"a": "", "b": "aa"}, (2, 2, 2, 2)),
    ],
)
def test_tasks_alone(simulation, inputs, seconds):
    tasks = graph(simulation, **inputs)
    plans = [simulation.simulate(tasks, workers) for workers in (1, 2, 3, 4)]
    assert tuple(plan.seconds for plan in plans) == seconds
    assert {(plan.work, plan.fetching) for plan in plans} == {(len(tasks), 0)}


def test_a_scheduler_sends_one_task_after_the_other(simulation):
    """A busy worker does not wait for it. Four get the first at 0.5, 1, 1.5 and 2 s."""
    costs = simulation.Costs(dispatch=0.5)
    tasks = graph(simulation, **INDEPENDENT)
    found = [simulation.simulate(tasks, workers, costs) for workers in (1, 2, 4, 64)]
    assert [plan.seconds for plan in found] == [0.5 + 8, 1 + 4, 8 * 0.5 + 1, 8 * 0.5 + 1]
    assert found[0].dispatching == 4
    assert simulation.simulate(graph(simulation, **CHAIN), 2, costs).seconds == 5 * 1.5


def test_a_result_travels_once_to_each_worker(simulation):
    """The second reader of ``b`` on the first worker has it already; other workers fetch both."""
    costs = simulation.Costs(bandwidth=100, latency=0.5)
    join = graph(simulation, a="", b="", c="ab")
    alone, two = (simulation.simulate(join, workers, costs) for workers in (1, 2))
    assert (alone.seconds, alone.fetching) == (3, 0)
    assert (two.seconds, two.fetching) == (1 + 0.5 + 1 + 1, 1.5)
    again = graph(simulation, a="", b="", c="ab", d="bc")
    found = simulation.simulate(again, 2, costs)
    assert (found.seconds, found.fetching) == (4.5, 1.5)


def test_the_critical_path(simulation):
    tasks = graph(simulation, **TREE)
    expected = {"a": 3, "b": 3, "c": 3, "d": 3, "e": 2, "f": 2, "g": 1}
    assert simulation.critical_path(tasks) == expected
    assert simulation.simulate(tasks, 2).path == 3


@pytest.mark.parametrize(
    ("inputs", "message"),
    [({"a": "b", "b": "a"}, "wait for one another"), ({"a": "z"}, "'a' reads 'z', which no task")],
)
def test_what_is_no_graph(simulation, inputs, message):
    with pytest.raises(ValueError, match=message):
        simulation.simulate(graph(simulation, **inputs), 2)


def test_recorded_graphs():
    """A sum reads each of eight blocks; its plan on one worker is the sum of its tasks."""
    distributed = pytest.importorskip("distributed")
    import scaling
    import simulation

    values = np.ones((32, 3), np.float32)
    with (
        distributed.LocalCluster(1, processes=False, dashboard_address=":0") as cluster,
        cluster.get_client(),
    ):

        def program():
            x = from_dask(da.from_array(values, (4, -1)))
            assert tp.sum(tp.exp(x) * 0 + x, axis=0).tolist() == [32, 32, 32]

        run = scaling.measured(cluster, lambda: program, 2)
    (tasks,) = run.graphs
    readers = {name for task in tasks.values() for name in task.inputs}
    (last,) = set(tasks) - readers
    assert tasks[last].nbytes == 3 * 4
    assert sum(not task.inputs for task in tasks.values()) >= 8
    assert sum(task.seconds for task in tasks.values()) == pytest.approx(run.workers)
    found = scaling.planned(run, simulation.Costs(dispatch=1000.0))
    assert found["tasks"] == len(tasks)
    assert {plan["limit"] for plan in found["plans"].values()} == {"scheduler"}
    assert found["plans"][64]["seconds"] > 1000 * len(tasks)
