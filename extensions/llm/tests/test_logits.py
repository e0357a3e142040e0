"""Scores are those of a model in float64, for each format, architecture and kind of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

import tensorplug as tp
import tensorplug_llm as llm

from .reference import reference
from .synthetic import (
    BASE,
    EPSILON,
    HEADS,
    TOKENS,
    weights,
    write_folder,
    write_gguf,
)

TEXT = np.random.default_rng(1).integers(2, len(TOKENS), 40).tolist()

# Format, architecture, kind of numbers, that of the embedding, and the bound of the error relative
# to the spread of scores. Weights in 16 bits are multiplied in 16 bits: a few ten roundings.
MODELS = [
    ("folder", "llama", Kind.F32, None, 5e-5),
    ("folder", "gpt2", Kind.F32, None, 5e-5),
    ("gguf", "llama", Kind.F32, None, 5e-5),
    ("gguf", "gpt2", Kind.F32, None, 5e-5),
    ("gguf", "llama", Kind.F16, None, 40 * 2.0**-11),
    ("gguf", "llama", Kind.BF16, None, 40 * 2.0**-8),
    ("gguf", "llama", Kind.Q8_0, None, 5e-5),
    ("gguf", "llama", Kind.Q4_0, None, 5e-5),
    ("gguf", "llama", Kind.Q4_1, Kind.Q8_0, 5e-5),
    ("gguf", "llama", Kind.Q4_1, Kind.Q4_1, 5e-5),
    ("gguf", "llama", Kind.Q5_0, None, 5e-5),
    ("gguf", "gpt2", Kind.Q4_1, Kind.Q8_0, 5e-5),
]


def written(folder, form, kind, stored=Kind.F32, embedded=None, **options):
    """Write a model; return its path, and its weights as the file holds them."""
    found = weights(kind, **options)
    if form == "folder":
        return write_folder(folder / "model", kind, found), found
    path = folder / "model.gguf"
    return path, write_gguf(path, kind, found, stored=stored, embedded=embedded)


def expected(kind, held, tokens=TEXT, **options):
    return reference(kind, held, tokens, heads=HEADS, base=BASE, epsilon=EPSILON, **options)


def compare(result, wanted, bound):
    assert result.dtype is tp.float32
    assert result.shape == wanted.shape
    assert np.abs(result.numpy() - wanted).max() < bound * wanted.std()


@pytest.mark.parametrize(("form", "kind", "stored", "embedded", "bound"), MODELS)
def test_scores_are_those_of_float64(tmp_path, form, kind, stored, embedded, bound):
    path, held = written(tmp_path, form, kind, stored, embedded)
    compare(llm.load(path).logits([TEXT])[0], expected(kind, held), bound)
    if stored in {Kind.Q4_1, Kind.BF16}:
        compare(llm.load(path, dtype="float32").logits([TEXT])[0], expected(kind, held), 5e-5)


def test_an_output_of_its_own_and_scaled_positions(tmp_path):
    found = weights("llama", tied=False)
    scaling = {"rope_type": "linear", "factor": 4.0}
    path = write_folder(tmp_path / "model", "llama", found, rope_scaling=scaling)
    compare(llm.load(path).logits([TEXT])[0], expected("llama", found, factors=4.0), 5e-5)


def test_frequencies_of_llama_3(tmp_path):
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 100,
    }
    found = weights("llama")
    path = write_folder(tmp_path / "model", "llama", found, rope_scaling=scaling)
    # Of 16 features of a head: waves of 6.3, 20, 63, 199, ... positions; 100 holds 16, 5, 1.6, 0.5
    kept = (100 * BASE ** (-2 * 2 / 16) / (2 * np.pi) - 1) / 3
    factors = np.asarray([1, 1, 1 / (kept + (1 - kept) / 8), *[8] * 5])
    compare(llm.load(path).logits([TEXT])[0], expected("llama", found, factors=factors), 5e-5)
