"""Small models with random weights, written as the formats' own packages write them."""

from __future__ import annotations

import json

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT = 2, 64, 4, 96, 640
EPSILON = 1e-5
BASE = 10000.0
KEY_HEADS = {"llama": 2, "gpt2": HEADS}
SPECIAL = ["<|start|>", "<|end|>"]
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("l", "l")]
LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
TOKENS = [*SPECIAL, *LETTERS, *("".join(pair) for pair in MERGES)]
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def weights(kind, *, tied=True, seed=0):
    """Return weights by the names of Hugging Face, float32; 0.3 keeps scores apart."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return (0.3 * rng.standard_normal(shape)).astype(np.float32)

    few = WIDTH // HEADS * KEY_HEADS[kind]
    found = {}
    if kind == "llama":
        found["model.embed_tokens.weight"] = normal(len(TOKENS), WIDTH)
        found["model.norm.weight"] = 1 + normal(WIDTH)
        if not tied:
            found["lm_head.weight"] = normal(len(TOKENS), WIDTH)
        for i in range(LAYERS):
            shapes = {
                "self_attn.q_proj": (WIDTH, WIDTH),
                "self_attn.k_proj": (few, WIDTH),
                "self_attn.v_proj": (few, WIDTH),
                "self_attn.o_proj": (WIDTH, WIDTH),
                "mlp.gate_proj": (HIDDEN, WIDTH),
                "mlp.up_proj": (HIDDEN, WIDTH),
                "mlp.down_proj": (WIDTH, HIDDEN),
                "input_layernorm": (WIDTH,),
                "post_attention_layernorm": (WIDTH,),
            }
            for name, shape in shapes.items():
                found[f"model.layers.{i}.{name}.weight"] = (len(shape) == 1) + normal(*shape)
        return found
    found["wte.weight"], found["wpe.weight"] = normal(len(TOKENS), WIDTH), normal(CONTEXT, WIDTH)
    norms = ["ln_f"]
    for i in range(LAYERS):
        for name, rows, columns in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, HIDDEN),
            ("mlp.c_proj", HIDDEN, WIDTH),
        ):
            found[f"h.{i}.{name}.weight"] = normal(rows, columns)
            found[f"h.{i}.{name}.bias"] = normal(columns)
        norms += [f"h.{i}.ln_1", f"h.{i}.ln_2"]
    for name in norms:
        found[f"{name}.weight"], found[f"{name}.bias"] = 1 + normal(WIDTH), normal(WIDTH)
    return found


def _codec():
    vocabulary = {text: index for index, text in enumerate(TOKENS)}
    codec = Tokenizer(models.BPE(vocab=vocabulary, merges=MERGES))
    codec.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    codec.decoder = decoders.ByteLevel()
    codec.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL])
    return codec


def write_folder(folder, kind, found, **settings):
    """Write a folder in Hugging Face's layout."""
    folder.mkdir()
    common = {"model_type": kind, "vocab_size": len(TOKENS), "eos_token_id": 1}
    own = {
        "llama": {
            "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KEY_HEADS["llama"],
            "intermediate_size": HIDDEN,
            "max_position_embeddings": CONTEXT,
            "rms_norm_eps": EPSILON,
            "rope_theta": BASE,
        },
        "gpt2": {
            "n_embd": WIDTH,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "n_positions": CONTEXT,
            "layer_norm_epsilon": EPSILON,
        },
    }
    _json(folder / "config.json", common | own.get(kind, {}) | settings)
    _json(
        folder / "tokenizer_config.json",
        {"chat_template": TEMPLATE, "eos_token": {"content": SPECIAL[1]}},
    )
    save_file(found, folder / "model.safetensors")
    _codec().save(str(folder / "tokenizer.json"))
    return folder


def _json(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")


GGUF_NAMES = {
    "llama": {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "lm_head": "output",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    },
    "gpt2": {
        "wte": "token_embd",
        "wpe": "position_embd",
        "ln_f": "output_norm",
        "attn.c_attn": "attn_qkv",
        "attn.c_proj": "attn_output",
        "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down",
        "ln_1": "attn_norm",
        "ln_2": "ffn_norm",
    },
}


def write_gguf(path, kind, found, *, stored=Kind.F32, embedded=None, **fields):
    """Write a GGUF file; return the weights as its kinds of numbers hold them."""
    writer = gguf.GGUFWriter(path, fields.pop("architecture", kind))
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS[kind])
    if kind == "llama":
        writer.add_layer_norm_rms_eps(EPSILON)
        writer.add_rope_freq_base(BASE)
        writer.add_rope_dimension_count(WIDTH // HEADS)
    else:
        writer.add_layer_norm_eps(EPSILON)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(fields.pop("pre", "gpt-2"))
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)))
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_eos_token_id(1)
    writer.add_chat_template(TEMPLATE)
    held = {}
    for name, value in found.items():
        base, suffix = name.rsplit(".", 1)
        layer = base.removeprefix("model.layers.").removeprefix("h.").partition(".")
        inside = layer[0].isdigit()
        role = GGUF_NAMES[kind][layer[2] if inside else base]
        turned = kind == "gpt2" and inside and value.ndim == 2
        rows = np.ascontiguousarray(value.T) if turned else value
        wanted = stored if value.ndim == 2 and role != "position_embd" else Kind.F32
        if role == "token_embd" and embedded is not None:
            wanted = embedded
        back = gguf.dequantize(gguf.quantize(rows, wanted), wanted)
        held[name] = back.T if turned else back
        if role in {"attn_q", "attn_k"}:  # GGUF turns neighbours
            rows = rows.reshape(-1, 2, WIDTH // HEADS // 2, WIDTH).swapaxes(1, 2)
            rows = rows.reshape(value.shape)
        place = f"blk.{layer[0]}.{role}" if inside else role
        if wanted in {Kind.F32, Kind.F16}:
            writer.add_tensor(f"{place}.{suffix}", gguf.quantize(rows, wanted))
        else:
            writer.add_tensor(f"{place}.{suffix}", gguf.quantize(rows, wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held
