"""Checkpoints: trees of tensors in folders, of which the best and the latest are kept."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import ArgumentError, tree
from tensorplug_train.fitting.monitoring import best_first, check, monitored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tensorplug_train.fitting.monitoring import Mode

_TENSORS: Final = "tensors.safetensors"
_SUMS: Final = "sums.safetensors"
_NOTES: Final = "notes.json"


@dataclass(frozen=True)
class Checkpoints:
    """A folder with one folder for each checkpoint, named by the step: ``step-000000120``.

    A checkpoint appears when it is complete, so a crash leaves none that is half written. It has
    ``tensors.safetensors``, whose names are ``model.layers.0.weight`` and so on, and
    ``notes.json``.

    Attributes:
        folder: is made if need be.
        keep_last: how many of the latest checkpoints are kept, 1 or more.
        keep_best: how many of the best ones.
        monitor: the name in the history by which they are compared; by default the loss of the
            validation if there is one.
        mode: whether the least number is the best, ``"min"``, or the largest, ``"max"``.

    Raises:
        ArgumentError: an argument is not of these kinds.

    Examples:
        >>> checkpoints = tp.train.Checkpoints("checkpoints", keep_last=1)
        >>> for step, loss in [(10, 0.5), (20, 0.25), (30, 0.75)]:
        ...     path = checkpoints.save(step, {"model": {"w": tp.ones(2) * step}}, {"loss": loss})
        >>> [path.name for path in checkpoints.all()], checkpoints.best().name
        (['step-000000020', 'step-000000030'], 'step-000000020')
        >>> found = checkpoints.load({"model": {"w": tp.zeros(2)}}, checkpoints.best())
        >>> found["model"]["w"].tolist()
        [20.0, 20.0]

    """

    folder: str | os.PathLike[str]
    keep_last: int = 2
    keep_best: int = 1
    monitor: str | None = None
    mode: Mode = "min"

    def __post_init__(self) -> None:
        counts = {"keep_last": self.keep_last, "keep_best": self.keep_best}
        check("Checkpoints", self.monitor, self.mode, **counts)
        if not self.keep_last:
            raise ArgumentError("Checkpoints: keep_last must be at least 1")

    def all(self) -> list[Path]:
        """Return the folders of all checkpoints, the latest last."""
        return sorted(Path(self.folder).glob("step-*"))

    def latest(self) -> Path | None:
        """Return the folder of the latest checkpoint, or None."""
        return found[-1] if (found := self.all()) else None

    def best(self) -> Path | None:
        """Return the folder of the best checkpoint, or None. Those without a row do not count."""
        return ranked[0] if (ranked := self._ranked()) else None

    def save(
        self,
        step: int,
        parts: Mapping[str, Any],
        row: Mapping[str, Any] | None = None,
        *,
        notes: Mapping[str, Any] | None = None,
        sums: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a checkpoint, remove those that are not to be kept, and return its folder.

        Args:
            step: a number by which checkpoints are ordered; one of the same number is replaced.
            parts: trees of tensors by name, such as ``{"model": model}``.
            row: numbers by name, one of which is compared.
            notes: anything that JSON has, to read with ``notes``.
            sums: dicts, lists and tuples of tensors, which ``sums`` returns as they are.

        Raises:
            ArgumentError: the row has no number of the name to monitor.
            OSError: the files cannot be written.

        """
        if row is not None:
            monitored(row, self.monitor)
        target = Path(self.folder, f"step-{step:09}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _replaced(target) as part:
            tensors = {name: leaf for key in parts for name, leaf in _named(key, parts[key])}
            tp.save(tensors, part / _TENSORS)
            if sums:
                tp.save({"sums": sums}, part / _SUMS)
            text = json.dumps({"step": step, "row": row, "notes": notes}, indent=1)
            (part / _NOTES).write_text(text + "\n", encoding="utf-8")
        kept = {*self.all()[-self.keep_last :], *self._ranked()[: self.keep_best]}
        for path in self.all():
            if path not in kept:
                shutil.rmtree(path)
        return target

    def load(
        self, like: Mapping[str, Any], path: str | os.PathLike[str] | None = None
    ) -> dict[str, Any]:
        """Return trees of a checkpoint by name.

        Args:
            like: by name, trees of the same structure and types as those that were saved; other
                parts of the checkpoint are not read.
            path: of the checkpoint, by default the latest.

        Raises:
            ArgumentError: there is no checkpoint, or it is that of another model. The message
                lists the tensors that are missing or additional, and those of another type.

        """
        folder = self._given(path)
        tensors = tp.load(folder / _TENSORS, nested=False)
        parts = {key: list(_named(key, like[key])) for key in like}
        wanted = dict(pair for part in parts.values() for pair in part)
        mine = {name for name in tensors if name.partition(".")[0] in like}
        lines = [f"missing: {name} {_type(wanted[name])}" for name in wanted if name not in mine]
        lines += [
            f"additional: {name} {tensors[name].type}" for name in sorted(mine - wanted.keys())
        ]
        lines += [
            f"another type: {name} is {tensors[name].type}, not {_type(leaf)}"
            for name, leaf in wanted.items()
            if name in mine and isinstance(leaf, Tensor) and tensors[name].type != leaf.type
        ]
        if lines:
            more = [f"and {len(lines) - 20} more"] if len(lines) > 20 else []
            differences = "\n  ".join(lines[:20] + more)
            raise ArgumentError(
                f"Checkpoints: {folder} is of another model or optimizer:\n  {differences}"
            )
        leaves = {
            name: tensors[name] if isinstance(leaf, Tensor) else tensors[name].item()
            for name, leaf in wanted.items()
        }
        return {
            key: tree.flatten(like[key])[1]([leaves[name] for name, _ in part])
            for key, part in parts.items()
        }

    def notes(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return ``{"step": ..., "row": ..., "notes": ...}`` of a checkpoint, the latest one."""
        text = (self._given(path) / _NOTES).read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text)
        return found

    def sums(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return the sums of a checkpoint, the latest one; {} without any."""
        file = self._given(path) / _SUMS
        return dict(tp.load(file)["sums"]) if file.exists() else {}

    def _given(self, path: str | os.PathLike[str] | None) -> Path:
        found = self.latest() if path is None else Path(path)
        if found is None:
            raise ArgumentError(f"Checkpoints: {self.folder} has no checkpoint")
        return found

    def _ranked(self) -> list[Path]:
        rows = [(path, self.notes(path)["row"]) for path in self.all()]
        rated = [(path, monitored(row, self.monitor)) for path, row in rows if row is not None]
        return [rated[at][0] for at in best_first([value for _, value in rated], self.mode)]


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Make a folder that takes the place of ``folder`` at the end; after an error, none is left.

    The old one is moved aside first, since no system replaces a folder that is not empty.
    """
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        yield part
        if folder.exists():
            old = folder.rename(part.with_suffix(".old"))
            part.rename(folder)
            shutil.rmtree(old)
        else:
            part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _named(name: str, part: Any) -> Iterator[tuple[str, Any]]:
    """Return the leaves of a tree in the order of ``tree.flatten``, each with its name."""
    opened = tree.opened(part)
    if opened is None:
        yield name, part
        return
    for key, child in opened.items():
        yield from _named(f"{name}.{key}", child)


def _type(leaf: Any) -> str:
    return str(leaf.type) if isinstance(leaf, Tensor) else type(leaf).__name__
