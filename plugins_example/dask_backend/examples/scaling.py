"""What more workers bring: measured on this machine, and by a simulated plan beyond it.

::

    python scaling.py --blocks 128 --workers 1,2,3,4 --json scaling.json --picture scaling.png

Each program runs on a ``LocalCluster`` of worker processes with one thread each. While it runs on
one worker, the graphs that the backend builds are recorded, with the processor time of each kind
of task and the size of its results. ``simulation.py`` plans these graphs for more workers, on
other machines of the same speed, with ``--bandwidth`` and ``--latency`` between them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import logistic
import numpy as np
import pca
from clusters import local_cluster
from dask.utils import key_split, parse_bytes, parse_timedelta
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
    """Records the graphs that are submitted, with the size of each task's result."""

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
        if (start, finish) == ("processing", "memory"):
            inputs = tuple(one.key for one in self._tasks[key].dependencies)
            self.graphs[-1][key] = Task(0.0, more["nbytes"], inputs)


@dataclass(frozen=True)
class Run:
    """A program that ran: seconds, and processor time of this process and of the workers."""

    seconds: float
    client: float
    workers: float
    graphs: list[Graph]


def processor_time(dask_worker: Any) -> tuple[float, dict[str, float]]:
    """Return that of a worker: all of it, and by kind of task. Runs on the worker."""
    kinds: dict[str, float] = {}
    for key, seconds in dask_worker.digests_total.items():
        if key[0] == "execute" and key[3] == "thread-cpu":
            kinds[key[2]] = kinds.get(key[2], 0.0) + seconds
    return time.process_time(), kinds


def worker_time(cluster: LocalCluster) -> tuple[float, dict[str, float]]:
    """Return the processor time of all workers together."""
    whole, kinds = 0.0, dict[str, float]()
    for seconds, found in cluster.get_client().run(processor_time).values():
        whole += seconds
        kinds = {kind: kinds.get(kind, 0.0) + found.get(kind, 0.0) for kind in kinds | found}
    return whole, kinds


def timed(graphs: list[Graph], whole: float, kinds: dict[str, float]) -> list[Graph]:
    """Return graphs with the time of each task: the mean of its kind, and what a worker adds.

    Processor time is what other programs on the machine change least. What a worker takes beyond
    its tasks (messages, copies to others) is divided equally. What was there before is no input.
    """
    count = Counter(key_split(key) for graph in graphs for key in graph)
    extra = max(0.0, whole - sum(kinds.values())) / count.total()
    return [
        {
            key: Task(
                kinds.get(key_split(key), 0.0) / count[key_split(key)] + extra,
                task.nbytes,
                tuple(name for name in task.inputs if name in graph),
            )
            for key, task in graph.items()
        }
        for graph in graphs
        if graph
    ]


def measured(cluster: LocalCluster, prepare: Callable[[], Program], repeats: int) -> Run:
    """Return the run of a program that takes the least processor time, and the shortest time."""
    program = prepare()
    program()  # imports, and pages of memory
    runs = []
    for _ in range(repeats):
        recorder = Recorder(cluster)
        cluster.scheduler.add_plugin(recorder)
        whole, kinds = worker_time(cluster)
        start, own = time.perf_counter(), time.process_time()
        program()
        seconds, own = time.perf_counter() - start, time.process_time() - own
        cluster.scheduler.remove_plugin(recorder.name)
        whole_then, kinds_then = worker_time(cluster)
        taken = {kind: kinds_then[kind] - kinds.get(kind, 0.0) for kind in kinds_then}
        graphs = timed(recorder.graphs, whole_then - whole, taken)
        runs.append(Run(seconds, own, whole_then - whole, graphs))
    best = min(runs, key=lambda run: run.client + run.workers)
    return replace(best, seconds=min(run.seconds for run in runs))


def dispatch_seconds(count: int = 2000) -> float:
    """Return the processor time of the scheduler's thread for a task that does nothing.

    The client's part of the connection runs in the same thread, because both are in this process.
    """
    with local_cluster(1) as cluster:
        client = cluster.get_client()
        found: list[float] = []
        for run in range(2):  # the first one imports
            graph: dict[str, Any] = {f"{run}-{one}": (abs, -one) for one in range(count)}
            graph[f"sum-{run}"] = (sum, list(graph))
            start = client.run_on_scheduler(time.thread_time)
            client.get(graph, f"sum-{run}")
            found.append((client.run_on_scheduler(time.thread_time) - start) / count)
        return found[1]


def planned(run: Run, costs: Costs) -> dict[str, Any]:
    """Return what the simulation makes of a run, and what limits it on so many workers.

    The client builds graphs and waits for one before the next: that is the same on any number.
    """
    tasks = sum(map(len, run.graphs))
    client = max(0.0, run.client - tasks * costs.dispatch)
    plans = {}
    for workers in SIMULATED:
        found = [simulate(graph, workers, costs) for graph in run.graphs]
        parts = {
            "work": sum(plan.work for plan in found) / workers,
            "critical path": sum(plan.path for plan in found),
            "scheduler": sum(plan.dispatching for plan in found),
            "transfer": sum(plan.fetching for plan in found) / workers,
            "client": client,
        }
        plans[workers] = {
            "seconds": client + sum(plan.seconds for plan in found),
            "limit": max(parts, key=parts.__getitem__),
            "parts": parts,
        }
    results = sum(task.nbytes for graph in run.graphs for task in graph.values())
    return {"tasks": tasks, "graphs": len(run.graphs), "bytes": results, "plans": plans}


def picture(found: dict[str, Any], path: Path) -> None:
    """Draw the speed-ups: measured as points, planned as lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for name, one in found["programs"].items():
        plans = {int(workers): plan["seconds"] for workers, plan in one["plans"].items()}
        times = {int(workers): run["seconds"] for workers, run in one["measured"].items()}
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
    cores = found["cores"]
    axes.set_title(f"Points: measured on {cores} cores. Lines: simulated, a core for each worker")
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
    print(f"the scheduler takes {costs.dispatch * 1e3:.2f} ms a task")
    runs: dict[str, dict[int, Run]] = {name: {} for name in names}
    for workers in sorted({1, *map(int, options.workers.split(","))}):
        with local_cluster(workers) as cluster:
            tp.set_backend("dask")
            for name in names:
                prepare = programs(options.blocks)[name]
                run = runs[name][workers] = measured(cluster, prepare, options.repeats)
                print(
                    f"{name}, workers: {workers}: {run.seconds:.2f} s; processor time: "
                    f"workers {run.workers:.2f} s, client and scheduler {run.client:.2f} s",
                    flush=True,
                )
    found: dict[str, Any] = {
        "cores": os.cpu_count(),
        "costs": asdict(costs),
        "blocks": options.blocks,
        "programs": {},
    }
    for name in names:
        one = planned(runs[name][1], costs)
        one["measured"] = {
            workers: {"seconds": run.seconds, "client": run.client, "workers": run.workers}
            for workers, run in runs[name].items()
        }
        found["programs"][name] = one
        plans = one["plans"]
        print(f"{name}: {one['tasks']} tasks in {one['graphs']} graphs")
        for workers, plan in plans.items():
            up = plans[1]["seconds"] / plan["seconds"]
            print(f"  simulated {workers}: {plan['seconds']:.2f} s, {up:.1f}x, {plan['limit']}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        picture(found, options.picture)


if __name__ == "__main__":
    main()
