"""ONNX's own tests: evidence that nobody of this project wrote.

Each case is an ONNX model with inputs and outputs, compared by ONNX's runner.
"""

from __future__ import annotations

import functools
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from tensorplug_onnx.backend import backend_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
# Kind of the suite -> name of the test -> why it fails.
KNOWN = tomllib.loads((FOLDER / "known_failures.toml").read_text())
PARTS = 8
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


@functools.cache
def suite(kind: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the cases are computed
        return {case.name: case for case in load_model_tests(kind=kind)}


def sets_of(case: Any, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
    if case.data_sets is not None:
        yield from case.data_sets
        return
    runner = Runner(backend_of("cpu"))
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        found: dict[str, list[Any]] = {"input": [], "output": []}
        for what, infos in (("input", model.graph.input), ("output", model.graph.output)):
            for at, info in enumerate(infos):
                path = folder / f"{what}_{at}.pb"
                if path.exists():
                    runner._load_proto(str(path), found[what], info.type)
        yield found["input"], found["output"]


def plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def fault(case: Any) -> str:
    """Return how a case fails; empty if it passes."""
    try:
        model = case.model or onnx.load(str(Path(case.model_dir) / "model.onnx"))
        prepared = backend_of("cpu").prepare(model)
        for inputs, outputs in sets_of(case, model):
            found = prepared.run([plain(value) for value in inputs])
            expected = [plain(value) for value in outputs]
            Runner.assert_similar_outputs(expected, found, case.rtol, case.atol)
    except Exception as error:  # noqa: BLE001  # each is a verdict
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_onnxs(kind: str, part: int) -> None:
    """Not a test for each case: to collect them takes every process seconds."""
    known = KNOWN.get(kind, {})
    chosen = sorted(suite(kind))[part::PARTS]
    faults = {name: why for name in chosen if (why := fault(suite(kind)[name]))}
    unknown = {name: why for name, why in faults.items() if name not in known}
    assert not unknown, "\n".join(f"{name}: {why}" for name, why in unknown.items())
    assert {name for name in chosen if name in known} == set(faults), "mended: forget these"


def test_every_known_failure_has_a_reason_and_a_test() -> None:
    for kind, known in KNOWN.items():
        assert all(known.values())
        assert set(known) <= set(suite(kind))
