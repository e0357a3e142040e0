"""What ``fit`` keeps in checkpoints, and how it goes on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import ArgumentError
from tensorplug_train.fitting.steps import Trained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_train.fitting.checkpoints import Checkpoints
    from tensorplug_train.fitting.steps import Steps
    from tensorplug_train.fitting.totals import Totals


_PARTS: Final = ("model", "state", "optimizer_state")


class Start(NamedTuple):
    """Where a run begins: ``epoch`` from 0; ``totals``: of an epoch that was interrupted.

    ``stopped``: whether a callback has ended the run.
    """

    trained: Trained
    epoch: int
    history: list[dict[str, Any]]
    totals: dict[str, Any] | None
    stopped: bool = False


def begin(
    steps: Steps, model: Any, state: Any, checkpoints: Checkpoints | None, *, resume: bool
) -> Start:
    """Return where to begin: at the latest checkpoint with ``resume``, if there is one.

    Raises:
        ArgumentError: there are no checkpoints to resume from or, without ``resume``, there are.

    """
    new = steps.begin(model, state)
    latest = None if checkpoints is None else checkpoints.latest()
    if checkpoints is None or latest is None:
        if resume and checkpoints is None:
            raise ArgumentError("fit: resume=True needs checkpoints")
        return Start(new, 0, [], None)
    if not resume:
        raise ArgumentError(
            f"fit: {checkpoints.folder} has checkpoints of an earlier run; pass resume=True to go "
            "on from there, or another folder"
        )
    saved = checkpoints.notes(latest)
    notes = saved["notes"]
    parts = checkpoints.load(dict(zip(_PARTS, new, strict=False)), latest)
    trained = Trained(**parts, steps=steps.count(saved["step"]))
    totals = notes["totals"]
    if totals is not None:
        totals["sums"] = checkpoints.sums(latest)
    return Start(trained, notes["epoch"], notes["history"], totals, notes["stopped"])


def keep(
    checkpoints: Checkpoints | None,
    now: Sequence[Any],
    epoch: int,
    history: list[dict[str, Any]],
    totals: Totals | None = None,
    *,
    stopped: bool = False,
) -> None:
    """Save a checkpoint, if there is a place for it.

    ``epoch``: from 0, the one to go on with; ``totals``: its first batches, if it is not new;
    ``stopped``: whether a callback has ended the run.
    """
    if checkpoints is None:
        return
    step = history[-1]["step"] if history else 0
    kept = None if totals is None else totals.kept()
    sums = None if kept is None else kept.pop("sums")
    checkpoints.save(
        step if totals is None else step + totals.batches,
        dict(zip(_PARTS, now, strict=False)),
        None if kept else history[-1],
        notes={"epoch": epoch, "history": history, "totals": kept, "stopped": stopped},
        sums=sums,
    )
