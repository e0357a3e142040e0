"""ONNX's own tests on a device: evidence that neither its vendor nor this project wrote.

The ``onnx`` package carries models with inputs and outputs: one or several for each operator
(kind ``node``), for features of the format (``simple``), written by old exporters
(``pytorch-operator``, ``pytorch-converted``), and known networks without their weights (``real``).
"""

from __future__ import annotations

import json
import time
import tomllib
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import onnx
from onnx import numpy_helper

import tensorplug as tp
from tensorplug_onnx.backend import backend_of
from tensorplug_onnx.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


KINDS: Final = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
Status = Literal["pass", "known", "unsupported", "fail"]
STATUSES: Final[dict[Status, str]] = {
    "pass": "passed",
    "known": "cannot pass",
    "unsupported": "no rule",
    "fail": "failed",
}
"""Every status, with its words for people."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one test gave.

    ``status``: ``known`` if a correct backend fails, too; ``unsupported`` without a rule. ``why``:
    the error's first lines, or the reason of what is known.
    """

    kind: str
    name: str
    status: Status
    seconds: float
    why: str = ""


@cache
def _suite(kind: str) -> Mapping[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the cases are computed
        from onnx.backend.test.loader import load_model_tests  # which takes seconds

        return {case.name: case for case in load_model_tests(kind=kind)}


def names_of(kind: str) -> list[str]:
    """Return the names of all tests of a kind."""
    return sorted(_suite(kind))


@dataclass(frozen=True, slots=True)
class Known:
    """Tests that a correct backend fails, by patterns, and why.

    ``units``: how far outputs may be off even so, in units in the last place; None if their values
    cannot be compared.
    """

    why: str
    tests: tuple[str, ...]
    units: int | None = None

    def excuses(self, expected: Sequence[Any], found: Sequence[Any]) -> bool:
        """Return whether outputs have the right shapes and dtypes, and are not too far off."""
        pairs = list(zip(_arrays(expected), _arrays(found), strict=False))
        return len(_arrays(expected)) == len(_arrays(found)) and all(
            isinstance(x, np.ndarray)
            and (x.shape, x.dtype) == (y.shape, y.dtype)
            and (self.units is None or _near(x, y, self.units))
            for y, x in pairs
        )


def _arrays(values: Any) -> list[Any]:
    """Return the arrays of outputs, those of sequences included."""
    if isinstance(values, list | tuple):
        return [array for value in values for array in _arrays(value)]
    return [values]


def _near(found: Any, expected: Any, units: int) -> bool:
    eps = float(np.spacing(np.ones((), found.dtype)))
    wide, right = found.astype(np.float64), expected.astype(np.float64)
    return bool(np.allclose(wide, right, rtol=units * eps, atol=0.0, equal_nan=True))


@cache
def known_failures() -> tuple[Known, ...]:
    """Return the tests that a correct backend fails."""
    file = resources.files("tensorplug_onnx").joinpath("known_failures.toml")
    found = tomllib.loads(file.read_text("utf-8")).values()
    return tuple(Known(one["why"], tuple(one["tests"]), one.get("units")) for one in found)


def check(
    device: str | None,
    kinds: Sequence[str] = KINDS,
    told: Callable[[Iterable[Any], int], Iterable[Any]] = lambda tests, _: tests,
) -> Iterator[Result]:
    """Yield the results of all tests.

    Args:
        device: the tensorplug device that runs the models; None for the active one.
        kinds: of ``KINDS``.
        told: takes the tests and their number, and yields them: for a progress bar.

    """
    tests = [(kind, name) for kind in kinds for name in names_of(kind)]
    for kind, name in told(tests, len(tests)):
        yield result_of(device, kind, name)


def result_of(device: str | None, kind: str, name: str) -> Result:
    """Return the result of one test on a device; None: on the active one."""
    began = time.perf_counter()
    status: Status = "pass"
    why = ""
    try:
        _run(device, _suite(kind)[name])
    except UnsupportedError as error:
        status, why = "unsupported", str(error)
    except _KnownError as error:
        status, why = "known", str(error)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises is a result
        lines = [line for line in str(error).splitlines() if line.strip()]
        told = [line for line in lines[2:] if line.lstrip().startswith("Max ")] or lines[2:3]
        status, why = "fail", f"{type(error).__name__}: {' '.join([*lines[:2], *told])}"
    return Result(kind, name, status, time.perf_counter() - began, why)


class _KnownError(Exception):
    """A test failed as it does on a correct backend; the message says why."""


def _run(device: str | None, case: Any) -> None:
    """Run a test.

    Raises:
        AssertionError: an output is wrong.
        _KnownError: it is, as that of a correct backend.

    """
    from onnx.backend.test.runner import Runner

    path = _path(case)
    model = onnx.load(str(path)) if case.model is None else case.model
    prepared = backend_of(device).prepare(path if case.model is None else model)
    known = [one for one in known_failures() if any(fnmatch(case.name, p) for p in one.tests)]
    for inputs, outputs in _data_of(case, path, model):
        found = prepared.run([_plain(value) for value in inputs])
        expected = [_plain(value) for value in outputs]
        try:
            Runner.assert_similar_outputs(expected, found, case.rtol, case.atol)
        except (AssertionError, TypeError) as error:  # TypeError: the runner cannot compare them
            if known and known[0].excuses(expected, found):
                raise _KnownError(known[0].why) from error
            raise


def _path(case: Any) -> Path | None:
    if case.model_dir is not None:
        return Path(case.model_dir) / "model.onnx"
    if case.url is not None:  # of a file in the onnx package
        return Path(onnx.__file__).parents[1] / str(case.url)
    return None


def _data_of(
    case: Any, path: Path | None, model: onnx.ModelProto
) -> Iterator[tuple[list[Any], list[Any]]]:
    from onnx.backend.test.runner import Runner

    if case.data_sets is not None:
        yield from case.data_sets
        return
    assert path is not None  # a test without data has a file
    runner = Runner.__new__(Runner)  # whose constructor prepares thousands of tests
    if case.model_dir is None:
        known = {tensor.name for tensor in model.graph.initializer}
        infos = [info for info in model.graph.input if info.name not in known]
        inputs = [runner.generate_dummy_data(info, name=case.model_name) for info in infos]
        outputs: list[Any] = []
        for at, info in enumerate(model.graph.output):
            stored = path.with_name(f"{path.stem}_output_{at}.pb")
            runner._load_proto(str(stored), outputs, info.type)
        yield inputs, outputs
        return
    for folder in sorted(path.parent.glob("test_data_set_*")):
        found: dict[str, list[Any]] = {"input": [], "output": []}
        for what, parts in (("input", model.graph.input), ("output", model.graph.output)):
            for at, info in enumerate(parts):
                file = folder / f"{what}_{at}.pb"
                if file.exists():
                    runner._load_proto(str(file), found[what], info.type)
        yield found["input"], found["output"]


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def table_of(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return for each kind how many tests have each status, in the order of ``STATUSES``."""
    counts = Counter((result.kind, result.status) for result in results)
    kinds = dict.fromkeys(result.kind for result in results)
    return [(kind, *(str(counts[kind, status]) for status in STATUSES)) for kind in kinds]


def write(results: Sequence[Result], device: str, folder: Path) -> tuple[Path, Path]:
    """Write ``onnx.json`` and ``onnx.md`` into a folder, beside a conformance report perhaps.

    Returns:
        Both paths.

    """
    folder.mkdir(parents=True, exist_ok=True)
    with tp.use_backend(device):
        hardware = tp.describe_device()
    stored, page = folder / "onnx.json", folder / "onnx.md"
    content = {
        "device": device,
        "hardware": hardware,
        "onnx": onnx.__version__,
        "tensorplug": tp.__version__,
        "results": [asdict(result) for result in results],
    }
    stored.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    lines = [
        f"# ONNX's tests on `{device}`",
        "",
        f"{hardware}; ONNX {onnx.__version__}, tensorplug {tp.__version__}.",
        "",
        f"| tests | {' | '.join(STATUSES.values())} |",
        "|---" + "|---:" * len(STATUSES) + "|",
        *(f"| {' | '.join(row)} |" for row in table_of(results)),
    ]
    others = [result for result in results if result.status != "pass"]
    if others:
        lines += ["", "| test | why not |", "|---|---|"]
        lines += [f"| {one.name} | {one.why.replace('|', chr(92) + '|')} |" for one in others]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return stored, page
