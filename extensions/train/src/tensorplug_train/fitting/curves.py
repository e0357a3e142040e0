"""Pictures of a history."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import ArgumentError, PackageNotInstalledError, pip_install
from tensorplug_train.fitting.callbacks import scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

_HIDDEN = {"epoch", "step", "seconds"}
_PREFIX = "validation_"


def curves(history: Sequence[dict[str, Any]]) -> Figure:
    """Return a figure with the loss and the metrics over the epochs.

    There is one panel for the loss and one for each metric, with the values in training and those
    of the validation. Results that are no single numbers are left out.

    ``history``: what ``fit`` returned.

    Raises:
        ArgumentError: the history has no rows.
        PackageNotInstalledError: matplotlib is not installed.

    Examples:
        >>> rows = [{"epoch": n, "step": 10 * n, "loss": 1 / n} for n in (1, 2, 3)]
        >>> tp.train.curves(rows).savefig("curves.png")

    """
    try:
        from matplotlib.figure import Figure  # an optional dependency
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise PackageNotInstalledError(
            f"curves needs matplotlib. Try: {pip_install('tensorplug-train[plots]')}"
        ) from error
    if not history:
        raise ArgumentError("curves: the history has no rows: no epoch was completed")
    found = dict.fromkeys(name for row in history for name in scalars(row))
    bare = (name.removeprefix(_PREFIX) for name in found if name not in _HIDDEN)
    names = list(dict.fromkeys(bare))
    columns = math.ceil(math.sqrt(len(names)))
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(max(6, 4 * columns), max(4, 3 * rows)), layout="constrained")
    for axes, name in zip(figure.subplots(rows, columns, squeeze=False).flat, names, strict=False):
        for key, label in ((name, "training"), (_PREFIX + name, "validation")):
            points = [(row["epoch"], row[key]) for row in history if key in row]
            if points:
                axes.plot(*zip(*points, strict=True), marker=".", label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel(name.replace("_", " "))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    for axes in figure.axes[len(names) :]:
        axes.remove()
    return figure
