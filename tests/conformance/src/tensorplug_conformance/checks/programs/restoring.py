"""Checkpoints: training that was saved and loaded continues with the same bits."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.checks.programs.training import TRAININGS, Run
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.corpus import Corpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_STEPS: Final = 3


def _resumed(_target: Target, opened: Callable[[], Session]) -> None:
    """Variables and the optimizer's state, through a file, into a run of another seed."""
    with opened().entered(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        run, other = Run(TRAININGS[2]), Run(TRAININGS[2], seed=9)
        run.steps(_STEPS)
        tensors = {name: parameter.read() for name, parameter in run.parameters.items()}
        names = {parameter.name: name for name, parameter in run.parameters.items()}
        tp.save({"p": tensors, "state": _renamed(run.optimizer.state, names)}, path)
        loaded = tp.load(path)
        other.steps(1)  # replaces its own state
        for name, parameter in other.parameters.items():
            parameter.assign(loaded["p"][name])
        names = {name: parameter.name for name, parameter in other.parameters.items()}
        other.optimizer.state = _renamed(loaded["state"], names)
        pairs = [(run.steps(_STEPS), other.steps(_STEPS))]
        same = all(map(same_bits, run.values().values(), other.values().values()))
    if pairs[0][0] != pairs[0][1] or not same:
        raise CheckFailedError("training that was loaded from a file continues differently")


def _renamed(state: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return the state of an optimizer with other names of the variables."""
    return {
        slot: {names[who]: item for who, item in found.items()} if slot != "step" else found
        for slot, found in state.items()
    }


def _copies(_target: Target, opened: Callable[[], Session]) -> None:
    """Every dtype of the backend through a file, pickle and a deep copy, to the last bit."""
    session = opened()
    held = dt.ANY - {dt.string, dt.complex128}  # which the files' format lacks
    dtypes = sorted(session.device.backend.dtypes & held, key=lambda dtype: dtype.name)
    with session.entered(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "all.safetensors")
        hosts = {dtype.name: Corpus(dtype).edges() for dtype in dtypes}
        hosts["rank 0"] = np.asarray(np.float32(2.5))
        hosts["empty"] = np.zeros((2, 0, 3), np.int32)
        tensors = {name: tp.asarray(host) for name, host in hosts.items()}
        tp.save(tensors, path)
        ways: dict[str, dict[str, Any]] = {
            "a file": tp.load(path),
            "pickle": pickle.loads(pickle.dumps(tensors)),  # our own
            "a deep copy": copy.deepcopy(tensors),
        }
        for way, restored in ways.items():
            for name, host in hosts.items():
                if not same_bits(np.asarray(restored[name].numpy()), host):
                    raise CheckFailedError(f"{name} has other bits after {way}")


CHECKS: Final = (
    Check(4, "training resumed from a file", _resumed),
    Check(4, "tensors saved and copied", _copies),
)
