"""Folders in the layout of Hugging Face: config.json, *.safetensors, tokenizer.json."""

from __future__ import annotations

import json
from math import pi
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_llm.assembling import assemble
from tensorplug_llm.configuration import Configuration, Matrix, ModelError
from tensorplug_llm.tokens import Tokenizer, from_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorplug_llm.assembling import Place

# By GGUF's names, which ``assemble`` asks for.
_LLAMA: Final = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "model.layers.{}.input_layernorm",
    "attn_q": "model.layers.{}.self_attn.q_proj",
    "attn_k": "model.layers.{}.self_attn.k_proj",
    "attn_v": "model.layers.{}.self_attn.v_proj",
    "attn_output": "model.layers.{}.self_attn.o_proj",
    "ffn_norm": "model.layers.{}.post_attention_layernorm",
    "ffn_gate": "model.layers.{}.mlp.gate_proj",
    "ffn_up": "model.layers.{}.mlp.up_proj",
    "ffn_down": "model.layers.{}.mlp.down_proj",
}
_GPT2: Final = {
    "token_embd": "wte",
    "position_embd": "wpe",
    "output_norm": "ln_f",
    "output": "lm_head",
    "attn_norm": "h.{}.ln_1",
    "attn_qkv": "h.{}.attn.c_attn",
    "attn_output": "h.{}.attn.c_proj",
    "ffn_norm": "h.{}.ln_2",
    "ffn_up": "h.{}.mlp.c_fc",
    "ffn_down": "h.{}.mlp.c_proj",
}
_TRANSPOSED: Final = {
    "attn_qkv",
    "attn_output",
    "ffn_up",
    "ffn_down",
}  # [inputs, outputs] in GPT-2


def read(folder: Path, place: Place) -> tuple[Configuration, dict[str, Any], Tokenizer]:
    """Read a model; ``place`` puts its weights, which are NumPy arrays, on the device.

    Raises:
        ModelError: the model is of another type than llama or gpt2, or incomplete.
        OSError: a file is missing or cannot be read.

    """
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    configuration = configure(settings)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(f"{folder} has no file *.safetensors")
    with tp.use_backend("cpu"):  # the host's memory, of which ``numpy`` makes no copy
        tensors = {name: x for file in files for name, x in tp.load(file, nested=False).items()}
    tensors = {name.removeprefix("transformer."): x for name, x in tensors.items()}

    def weight(name: str) -> Matrix | None:
        layer, _, rest = name.removeprefix("blk.").partition(".")
        role, suffix = (rest if name.startswith("blk.") else name).rsplit(".", 1)
        pattern = (_LLAMA if configuration.llama else _GPT2).get(role)
        found = None if pattern is None else tensors.get(f"{pattern.format(layer)}.{suffix}")
        if found is None or (role == "output" and settings.get("tie_word_embeddings")):
            return None
        values = found.numpy()
        turned = not configuration.llama and suffix == "weight" and role in _TRANSPOSED
        return Matrix(np.ascontiguousarray(values.T) if turned else values)

    return configuration, assemble(weight, configuration, place), from_folder(folder, settings)


def configure(settings: Mapping[str, Any]) -> Configuration:
    """Return the sizes that ``config.json`` gives."""
    kind = settings.get("model_type")
    if kind == "gpt2":
        width, heads = settings["n_embd"], settings["n_head"]
        return Configuration(
            layers=settings["n_layer"],
            width=width,
            heads=heads,
            key_heads=heads,
            head_size=width // heads,
            vocabulary=settings["vocab_size"],
            context=settings["n_positions"],
            epsilon=settings["layer_norm_epsilon"],
            llama=False,
            frequencies=(),
        )
    if kind != "llama":
        raise ModelError(f"the model type is {kind!r}; llama and gpt2 are implemented")
    width, heads = settings["hidden_size"], settings["num_attention_heads"]
    size = settings.get("head_dim") or width // heads
    rope = {"rope_theta": settings.get("rope_theta", 10000.0)}
    rope |= settings.get("rope_scaling") or {}
    rope |= settings.get("rope_parameters") or {}
    frequencies = rope["rope_theta"] ** (-np.arange(0, size, 2) / size)
    return Configuration(
        layers=settings["num_hidden_layers"],
        width=width,
        heads=heads,
        key_heads=settings.get("num_key_value_heads", heads),
        head_size=size,
        vocabulary=settings["vocab_size"],
        context=settings["max_position_embeddings"],
        epsilon=settings["rms_norm_eps"],
        llama=True,
        frequencies=tuple(_scaled(frequencies, rope).tolist()),
    )


def _scaled(frequencies: Any, rope: Mapping[str, Any]) -> Any:
    """Scale rotary frequencies as the file says.

    Source of "llama3": "The Llama 3 herd of models" (Grattafiori et al., 2024), as in Hugging
    Face's modeling_rope_utils. Waves that are longer than the old context become longer by
    ``factor``, and those of which it holds many stay; between them, both are mixed.
    """
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return frequencies
    if kind == "linear":
        return frequencies / rope["factor"]
    if kind != "llama3":
        raise ModelError(f"rotary positions are scaled by {kind!r}")
    waves = rope["original_max_position_embeddings"] * frequencies / (2 * pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = np.clip((waves - low) / (high - low), 0, 1)
    return frequencies * (kept + (1 - kept) / rope["factor"])
