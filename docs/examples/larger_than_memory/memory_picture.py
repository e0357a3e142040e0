"""The picture: memory over time, and the peak for tables of several sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from memory_trace import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memory_trace import Trace


COLORS = {"cpu": "#666666", "dask": "#0072B2"}
RED = "#D55E00"


def draw(traces: Sequence[Trace], limit: int, file: Path) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(10, 4.4), layout="constrained", facecolor="white")
    axes: Any = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _over_time(axes[0], traces, limit)
    _peaks(axes[1], traces, limit)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(visible=True, color="#e6e6e6", linewidth=0.8)
        each.set_axisbelow(True)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130, format="png")


def _over_time(axes: Any, traces: Sequence[Trace], limit: int) -> None:
    failed = next(trace for trace in traces if trace.limit == limit and trace.backend == "cpu")
    for trace in traces:
        if trace.rows == failed.rows and trace is not failed:
            label = trace.backend + ("" if trace.limit == limit else ", without a limit")
            memory = [bytes_ / MIB for bytes_ in trace.memory]
            axes.plot(trace.seconds, memory, color=COLORS[trace.backend], label=label)
    if failed.failed_for_memory:
        place = (0, failed.data / MIB)
        axes.plot(*place, "X", color=RED, markersize=11, label="cpu, within the limit")
        text = "MemoryError: the table does not fit"
        axes.annotate(text, place, (12, 5), textcoords="offset points", color=RED)
    axes.axhline(limit / MIB, color=RED, linestyle="--", label=f"limit: {limit / MIB:.0f} MiB")
    axes.set(xlabel="seconds", ylabel="memory, beyond that at the start (MiB)", ylim=(0, None))
    title = f"Principal components of {failed.data / MIB:.0f} MiB"
    axes.set_title(title, loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="upper left")


def _peaks(axes: Any, traces: Sequence[Trace], limit: int) -> None:
    for backend, color in COLORS.items():
        done = [trace for trace in traces if trace.backend == backend and trace.code == 0]
        data, peaks = ([getattr(trace, what) / MIB for trace in done] for what in ("data", "peak"))
        axes.plot(data, peaks, "o-", color=color, label=backend)
    most = max(trace.data for trace in traces) / MIB
    axes.axline((0, 0), slope=1, color="black", linewidth=1, linestyle=":", label="the data")
    axes.axhline(limit / MIB, color=RED, linestyle="--", label="limit for dask")
    axes.set(xlabel="size of the table (MiB)", xlim=(0, 1.04 * most), ylim=(0, 1.04 * most))
    axes.set_title("Peak memory (MiB)", loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="upper left")
