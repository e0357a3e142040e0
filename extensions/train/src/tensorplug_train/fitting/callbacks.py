"""What ``fit`` calls after each epoch."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.plugin import PackageNotInstalledError, pip_install, scratch_file
from tensorplug_train.fitting.monitoring import check, monitored

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tensorplug_train.fitting.monitoring import Mode


class Epoch(NamedTuple):
    """What a callback gets after an epoch.

    ``history``: the rows so far; ``model``, ``state``, ``optimizer_state``: trees of tensors.

    Examples:
        >>> def stop_at_the_goal(epoch):
        ...     return epoch.row["loss"] < 0.1
        >>> rows = [{"epoch": 1, "loss": 0.4}, {"epoch": 2, "loss": 0.05}]
        >>> stop_at_the_goal(tp.train.Epoch(rows, None, None, None))
        True

    """

    history: list[dict[str, Any]]
    model: Any
    state: Any
    optimizer_state: Any

    @property
    def row(self) -> dict[str, Any]:
        """The row of this epoch."""
        return self.history[-1]


@dataclass(frozen=True)
class EarlyStopping:
    """Stops the training when the last ``patience`` epochs have brought nothing better.

    It asks the history alone, so it goes on as before when a run is resumed. The best model is
    that of ``Checkpoints.best``.

    Attributes:
        monitor: a name in the history; by default the loss of the validation if there is one.
        patience: how many epochs may pass without a better number.
        least: by how much a number must be better.
        mode: whether the least number is the best, ``"min"``, or the largest, ``"max"``.

    Raises:
        ArgumentError: an argument is not of these kinds.

    Examples:
        >>> stopping = tp.train.EarlyStopping("validation_loss", patience=2)
        >>> rows = [{"validation_loss": loss} for loss in (3.0, 1.0, 2.0, 2.0)]
        >>> [stopping(tp.train.Epoch(rows[:n], None, None, None)) for n in (2, 3, 4)]
        [False, False, True]

    """

    monitor: str | None = None
    patience: int = 5
    least: float = 0.0
    mode: Mode = "min"

    def __post_init__(self) -> None:
        check("EarlyStopping", self.monitor, self.mode, patience=self.patience)

    def __call__(self, epoch: Epoch) -> bool:
        """Return whether to stop."""
        sign = -1.0 if self.mode == "max" else 1.0
        best, at = float("inf"), 0
        for number, row in enumerate(epoch.history):
            value = sign * monitored(row, self.monitor)
            if value < best - self.least:
                best, at = value, number
        return len(epoch.history) - 1 - at >= self.patience


@dataclass(frozen=True)
class CsvLog:
    """Writes the history to a file of comma-separated values, one row for each epoch.

    The whole file is replaced each time, so it is complete at any moment, has no row twice when a
    run is resumed, and all columns. Results that are no single numbers are left out.

    ``path``: of the file, whose folder must exist.

    Examples:
        >>> log = tp.train.CsvLog("log.csv")
        >>> log(tp.train.Epoch([{"epoch": 1, "loss": 0.5}], None, None, None))
        >>> with open("log.csv", encoding="utf-8") as file:
        ...     print(file.read().strip())
        epoch,loss
        1,0.5

    """

    path: str | os.PathLike[str]

    def __call__(self, epoch: Epoch) -> None:
        """Write the file."""
        rows = [scalars(row) for row in epoch.history]
        names = dict.fromkeys(name for row in rows for name in row)
        text = StringIO()
        writer = csv.DictWriter(text, list(names), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with scratch_file(Path(self.path)) as file:
            file.write(text.getvalue().encode())


class TensorBoardLog:
    """Writes the rows as scalars that TensorBoard shows, over the number of the step.

    Each object writes a file of its own, so give a resumed run the same folder: TensorBoard joins
    the files. Results that are no single numbers are left out.

    Args:
        folder: of the run; TensorBoard makes it.

    Raises:
        PackageNotInstalledError: TensorBoard is not installed. TensorFlow is not needed.

    Examples:
        >>> log = tp.train.TensorBoardLog("runs/first")
        >>> log(tp.train.Epoch([{"epoch": 1, "step": 10, "loss": 0.5}], None, None, None))

    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from tensorboard.summary import Writer  # an optional dependency
        except ImportError as error:
            raise PackageNotInstalledError(
                "TensorBoardLog needs TensorBoard. Try: "
                + pip_install("tensorplug-train[tensorboard]")
            ) from error
        self._writer = Writer(str(folder))

    def __call__(self, epoch: Epoch) -> None:
        """Write the last row."""
        for name, value in scalars(epoch.row).items():
            if name not in {"epoch", "step"}:
                self._writer.add_scalar(name, value, epoch.row["step"])
        self._writer.flush()


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """Return those entries of a row that are single numbers."""
    return {name: value for name, value in row.items() if isinstance(value, int | float)}
