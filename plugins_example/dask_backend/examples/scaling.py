"""What more workers bring: measured on this machine, and by a simulated plan beyond it.

::

    python scaling.py --blocks 128 --workers 1,2,3,4 --json scaling.json --picture scaling.png

Each program runs on a ``LocalCluster`` of worker processes with one thread each. While it runs on
one worker, the graphs that the backend builds are recorded, with the time that each kind of task
takes and the size of its results. ``simulation.py`` plans these graphs for more workers, on other
machines of the same speed, with ``--bandwidth`` and ``--latency`` between them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import logistic
import numpy as np
import pca
from clusters import local_cluster
from dask.utils import key_split, parse_bytes, parse_timedelta
from distributed import wait
from distributed.diagnostics.plugin import SchedulerPlugin
from outofcore import Table, tensor
from simulation import Costs, Task, simulate

import tensorplug as tp
from tensorplug_dask import from_dask, persist

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import LocalCluster

    Program = Callable[[], object]
    Graph = dict[Any, Task]

ROWS, COLUMNS = 8192, 64  # of a block: 2 MiB
SIDE = 512  # of a square block: 1 MiB
SIMULATED = (1, 2, 3, 4, 8, 16, 32, 64)


def normal(shape: tuple[int, int], chunks: tuple[int, int]) -> tp.Tensor:
    """Return random numbers that the workers hold."""
    x = from_dask(da.random.default_rng(0).standard_normal(shape, chunks=chunks, dtype=np.float32))
    persist(x)
    return x


def programs(blocks: int) -> dict[str, Callable[[], Program]]:
    """Return, by name, what prepares the data of a program and returns the program."""
    rows = blocks * ROWS

    def example(run: Callable[[tp.Tensor], str], table: Table) -> Program:
        return lambda: run(tensor(table, rows, "dask"))

    def chain() -> Program:
        x = normal((rows, COLUMNS), (ROWS, COLUMNS))
        return lambda: persist(tp.tanh(tp.exp(x * 0.5) - x) * tp.sqrt(tp.abs(x)))

    def total() -> Program:
        x = normal((rows, COLUMNS), (ROWS, COLUMNS))
        return lambda: tp.sum(x, axis=0).numpy()

    def product() -> Program:
        side = SIDE * max(2, round((2 * blocks) ** 0.5) // 2)
        x = normal((side, side), (SIDE, SIDE))
        return lambda: persist(x @ x)

    def gather() -> Program:
        x = normal((rows, COLUMNS), (ROWS, COLUMNS))
        places = tp.asarray(np.random.default_rng(0).integers(0, rows, 2048, dtype=np.int32))
        return lambda: tp.gather(x, places).numpy()

    def largest() -> Program:
        x = normal((COLUMNS, rows), (COLUMNS, ROWS))
        return lambda: [item.numpy() for item in tp.topk(x, 16)]

    return {
        "PCA": lambda: example(pca.run, Table(pca.block, pca.FEATURES)),
        "logistic regression": lambda: example(
            logistic.run, Table(logistic.block, logistic.FEATURES + 1)
        ),
        "elementwise chain": chain,
        "sum": total,
        "matrix product": product,
        "gather": gather,
        "top k": largest,
    }


class Recorder(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types here
    """Records the graphs that are submitted, and what their tasks take."""

    name = "recorder"

    def __init__(self, cluster: LocalCluster) -> None:
        self.graphs: list[Graph] = []
        self._tasks = cluster.scheduler.tasks

    def update_graph(self, *_given: Any, **_more: Any) -> None:
        """Begin a graph; the programs wait for each one before the next."""
        self.graphs.append({})

    def transition(self, *change: Any, **more: Any) -> None:
        """Record a task that has run."""
        key, start, finish = change[:3]
        if (start, finish) != ("processing", "memory"):
            return
        steps = more["startstops"]
        seconds = sum(one["stop"] - one["start"] for one in steps if one["action"] == "compute")
        inputs = tuple(one.key for one in self._tasks[key].dependencies)
        self.graphs[-1][key] = Task(seconds, more["nbytes"], inputs)


def typical(graphs: list[Graph]) -> list[Graph]:
    """Return graphs where each kind of task takes its median; what was there is no input."""
    kinds: dict[str, list[float]] = {}
    for graph in graphs:
        for key, task in graph.items():
            kinds.setdefault(key_split(key), []).append(task.seconds)
    medians = {kind: statistics.median(found) for kind, found in kinds.items()}
    return [
        {
            key: Task(
                medians[key_split(key)],
                task.nbytes,
                tuple(name for name in task.inputs if name in graph),
            )
            for key, task in graph.items()
        }
        for graph in graphs
        if graph
    ]


def measured(
    cluster: LocalCluster, prepare: Callable[[], Program], repeats: int
) -> tuple[float, list[Graph]]:
    """Return the shortest time of a program on a cluster, and the graphs of that run."""
    program = prepare()
    program()  # imports, and pages of memory
    best: tuple[float, list[Graph]] = (float("inf"), [])
    for _ in range(repeats):
        recorder = Recorder(cluster)
        cluster.scheduler.add_plugin(recorder)
        start = time.perf_counter()
        program()
        seconds = time.perf_counter() - start
        cluster.scheduler.remove_plugin(recorder.name)
        best = min(best, (seconds, recorder.graphs), key=lambda found: found[0])
    return best


def dispatch_seconds(count: int = 2000) -> float:
    """Return the processor time of client and scheduler for a task that does nothing."""
    with local_cluster(1) as cluster:
        client = cluster.get_client()
        wait(client.map(abs, range(100)))
        start = time.process_time()
        wait(client.map(abs, range(1000, 1000 + count)))
        return (time.process_time() - start) / count


def planned(seconds: float, graphs: list[Graph], costs: Costs) -> dict[str, Any]:
    """Return speed-ups by the simulation, and what limits the program on so many workers.

    What a run on one worker takes beyond its graphs (the client, which builds them and waits for
    one after the other; what the model does not know) is taken to be the same on any number.
    """
    alone = [simulate(graph, 1, costs) for graph in graphs]
    rest = max(0.0, seconds - sum(plan.seconds for plan in alone))
    found: dict[str, Any] = {
        "tasks": sum(map(len, graphs)),
        "graphs": len(graphs),
        "rest": rest,
        "bytes": sum(task.nbytes for graph in graphs for task in graph.values()),
        "plans": {},
    }
    for workers in SIMULATED:
        plans = [simulate(graph, workers, costs) for graph in graphs]
        parts = {
            "work": sum(plan.work for plan in plans) / workers,
            "critical path": sum(plan.path for plan in plans),
            "scheduler": sum(plan.dispatching for plan in plans),
            "transfer": sum(plan.fetching for plan in plans) / workers,
            "the rest": rest,
        }
        time_ = rest + sum(plan.seconds for plan in plans)
        limit = max(parts, key=parts.__getitem__)
        found["plans"][workers] = {"seconds": time_, "limit": limit, "parts": parts}
    return found


def picture(found: dict[str, Any], path: Path) -> None:
    """Draw the speed-ups: measured as points, planned as lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for name, one in found["programs"].items():
        plans = {int(workers): plan["seconds"] for workers, plan in one["plans"].items()}
        times = {int(workers): seconds for workers, seconds in one["measured"].items()}
        (line,) = axes.plot(list(plans), [plans[1] / item for item in plans.values()], label=name)
        ups = [times[1] / item for item in times.values()]
        axes.plot(list(times), ups, "o", color=line.get_color())
    axes.plot(SIMULATED, SIMULATED, ":", color="grey", label="linear")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="workers of one thread",
        ylabel="speed-up over one worker",
    )
    axes.set_xticks(SIMULATED, [str(one) for one in SIMULATED])
    axes.set_yticks(SIMULATED, [str(one) for one in SIMULATED])
    axes.minorticks_off()
    axes.set_title("Points: measured on two cores. Lines: simulated, a core for each worker")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure and simulate what the command line says; print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=128, help="blocks of 2 MiB")
    parser.add_argument("--workers", default="1,2,3,4")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--bandwidth", default="1GB", help="between workers, per second")
    parser.add_argument("--latency", default="1ms", help="of each transfer")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--picture", type=Path, help="write a picture to this file")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(programs(options.blocks))
    costs = Costs(
        dispatch_seconds(), parse_bytes(options.bandwidth), parse_timedelta(options.latency)
    )
    print(f"scheduler and client: {costs.dispatch * 1e3:.2f} ms a task")
    times: dict[str, dict[int, float]] = {name: {} for name in names}
    graphs: dict[str, list[Graph]] = {}
    for workers in sorted({1, *map(int, options.workers.split(","))}):
        with local_cluster(workers) as cluster:
            tp.set_backend("dask")
            for name in names:
                prepare = programs(options.blocks)[name]
                times[name][workers], recorded = measured(cluster, prepare, options.repeats)
                graphs.setdefault(name, typical(recorded))
    found: dict[str, Any] = {"costs": asdict(costs), "blocks": options.blocks, "programs": {}}
    for name in names:
        one = planned(times[name][1], graphs[name], costs)
        found["programs"][name] = {**one, "measured": times[name]}
        plans, alone = one["plans"], times[name][1]
        print(
            f"{name}: {one['tasks']} tasks in {one['graphs']} graphs, {alone:.2f} s; measured",
            " ".join(f"{workers}: {alone / item:.2f}" for workers, item in times[name].items()),
            "- simulated",
            " ".join(f"{w}: {plans[1]['seconds'] / p['seconds']:.1f}" for w, p in plans.items()),
            f"- at {SIMULATED[-1]}: {plans[SIMULATED[-1]]['limit']}",
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        picture(found, options.picture)


if __name__ == "__main__":
    main()
