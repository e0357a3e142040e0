"""What the core knows of this distribution, what importing it costs, and its certificate."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug_train.specs import ADAM, SPECS

DISTRIBUTION = "tensorplug-train"
OWNER = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_kernels_rules_and_decompositions_are_known_as_ours(spec):
    explained = tp.explain(spec.name, backend="cpu")
    assert (explained.how, explained.owner) == ("native", OWNER)
    tp.unregister_kernel(spec, "cpu")
    explained = tp.explain(spec.name, backend="cpu")
    assert (explained.how, explained.owner) == ("decomposed", OWNER)
    for name in spec.input_names:
        with pytest.raises(tp.errors.RegistrationError, match=f"already registered by {OWNER}"):
            tp.register_gradient(spec.name, name, lambda: None)


def test_no_backend_is_imported_before_use():
    script = """
import sys
import tensorplug_train.plugin
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert loaded == {"tensorplug_train"}


def test_one_opencl_program_serves_every_number_and_size(active, engine):
    active("opencl")
    for shape, beta in (((3,), 0.9), ((2, 5), 0.5), ((1,), 0.0)):
        arrays = [tp.ones(shape)] * 4
        numbers = [tp.asarray(number) for number in (0.1, 0.5, 0.5)]
        for weight_decay in (0.0, 0.1):
            attributes = {"beta1": beta, "weight_decay": weight_decay, "decoupled": True}
            new, mean, _ = tp.run_kernel(ADAM, [*arrays, *numbers], attributes)
            assert mean.numpy() == pytest.approx(1.0)
            start = 1 - 0.1 * weight_decay
            assert new.numpy() == pytest.approx(start - 0.2 / (2**0.5 + 1e-8), rel=1e-6)
    assert engine.open("opencl").backend.memory()["programs"] == 1


@pytest.mark.parametrize("backend", [pytest.param("cpu", marks=pytest.mark.slow), "minimal"])
def test_a_kernel_is_certified(tmp_path, backend):
    """Try one of them; README.md says what came of all.

    `make conformance` certifies them too on `cpu`, with the whole catalogue.
    """
    if backend not in {info.name for info in tp.backends()}:
        pytest.skip(f"{backend} is not installed")
    command = ["run", "--backend", backend, "--level", "3", "--report", str(tmp_path)]
    chosen = ["--kernels", "AdamStep", "--dtypes", "float32"]
    subprocess.run(
        [sys.executable, "-m", "tensorplug_conformance", *command, *chosen],
        capture_output=True,
        check=True,
    )
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    found = {row["mode"]: row["status"] for row in report["rows"]}
    native = "pass native" if backend == "cpu" else "not claimed"
    passed = {name: f"pass {name}" for name in ("decomposed", "gradient")}
    assert found == {"native": native, **passed}


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)), {})
