"""The table and the picture of the targets: ours against the best of the peers, in one run."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final

from harness import measure
from peers import backends
from rows import PEERS
from targets import find_best, targets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness import Measurement
    from targets import Target


LIMITS: Final = {"opencl": 1.2}
"""Backends with one target for all rows: that of OpenCL is for a CPU's runtime."""

COLORS: Final = {"cpu": "#2a6f97", "opencl": "#e08e45"}


def report(
    only: Sequence[str], rounds: int, limit: float, clock: Callable[[], float] = time.perf_counter
) -> list[dict[str, Any]]:
    """Measure and print every target, or those whose names contain one of ``only``."""
    rows = []
    print(f"\n{'workload':36}{'best peer':>20}", end="")
    for backend in backends():
        print(f"{backend:>20}{'ratio':>8}", end="")
    print(f"{'target':>8}")
    for target in targets():
        if only and not any(text in target.name for text in only):
            continue
        rows.append(_measure(target, rounds, limit, clock))
        _print(rows[-1])
    return rows


def _measure(
    target: Target, rounds: int, limit: float, clock: Callable[[], float]
) -> dict[str, Any]:
    figures = measure(target.make(), rounds=rounds, limit=limit, clock=clock)
    peer = find_best(figures, target.peers)
    row: dict[str, Any] = {
        "workload": target.name,
        "target": target.ratio,
        "peer": peer,
        "microseconds": {name: figures.median(name) * 1e6 for name in figures.seconds},
        "ratios": {},
        "unit": target.unit,
    }
    for backend in backends():
        ours = _ours(figures, backend)
        if ours is not None and peer is not None:
            row["ratios"][backend] = (ours, figures.ratio(ours, peer))
    return row


def _ours(figures: Measurement, backend: str) -> str | None:
    names = [f"tensorplug {backend}", f"tensorplug {backend} compiled"]
    return find_best(figures, names)


def _show(row: dict[str, Any], name: str | None) -> str:
    """Return the time of a contender, with the peer's name or "eager" for ours."""
    if name is None:
        return "none"
    number = row["microseconds"][name] / row["unit"]
    unit = "ms" if row["unit"] == 1000 else "us"
    what = f"{name} " if name in PEERS else "" if "compiled" in name else "eager "
    return f"{what}{number:.3g} {unit}"


def _print(row: dict[str, Any]) -> None:
    print(f"{row['workload']:36}{_show(row, row['peer']):>20}", end="")
    for backend in backends():
        ours, ratio = row["ratios"].get(backend, (None, float("nan")))
        print(f"{_show(row, ours):>20}{ratio:8.2f}", end="")
    print(f"{row['target']:8.2f}", flush=True)


def write_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a table in Markdown; ratios that meet their target are bold."""
    names = list(dict.fromkeys(name for row in rows for name in row["ratios"]))
    head = ["workload", "best peer", *(f"{name}: time, ratio" for name in names), "target"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = [row["workload"], _show(row, row["peer"])]
        for name in names:
            ours, ratio = row["ratios"].get(name, (None, math.nan))
            met = ratio <= LIMITS.get(name, row["target"])
            number = f"**{ratio:.2f}**" if met else f"{ratio:.2f}"
            cells.append("" if ours is None else f"{_show(row, ours)}, {number}")
        lines.append(f"| {' | '.join([*cells, str(row['target'])])} |")
    return "\n".join(lines) + "\n"


def draw(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw the ratios as bars, shorter is faster, with the best peer at 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = [row for row in rows if row["ratios"]]
    names = list(dict.fromkeys(name for row in shown for name in row["ratios"]))
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(shown) + 1.2), layout="constrained")
    height = 0.8 / max(len(names), 1)
    longest = 3.0
    for at, name in enumerate(names):
        places = [number + (at - (len(names) - 1) / 2) * height for number in range(len(shown))]
        ratios = [row["ratios"].get(name, (None, float("nan")))[1] for row in shown]
        bars = [min(ratio, longest) for ratio in ratios]
        axes.barh(places, bars, height * 0.92, label=name, color=COLORS.get(name))
        for place, bar, ratio in zip(places, bars, ratios, strict=True):
            if not math.isnan(ratio):
                axes.text(bar + 0.02, place, f"{ratio:.2f}", va="center", fontsize=7)
    for number, row in enumerate(shown):
        axes.plot([row["target"]] * 2, [number - 0.42, number + 0.42], color="black", lw=1)
    axes.axvline(1.0, color="gray", lw=0.8, ls="--")
    axes.set_yticks(range(len(shown)), [row["workload"] for row in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, longest + 0.25)
    axes.margins(y=0.01)
    axes.set_xlabel("time / best peer's time (black lines: targets; longer bars are cut)")
    figure.legend(title="tensorplug", loc="outside upper right", ncols=len(names), fontsize=8)
    figure.savefig(file)
    plt.close(figure)
