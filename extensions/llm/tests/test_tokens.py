"""Tokenizers from the metadata of GGUF files, and from folders."""

from __future__ import annotations

import pytest
from gguf import GGMLQuantizationType as Kind

import tensorplug_llm as llm
from tensorplug_llm.tokens import from_gguf

from .synthetic import LETTERS, weights, write_folder, write_gguf

BYTES = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["<|end|>", *LETTERS, "12", "123", "Ġa", "\u010a\u010a"],
    "tokenizer.ggml.token_type": [3] + [1] * (len(LETTERS) + 4),
    "tokenizer.ggml.merges": ["1 2", "12 3", "Ġ a", "\u010a \u010a"],
    "tokenizer.ggml.eos_token_id": 0,
}
PIECES = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": [
        "<unk>",
        "<s>",
        "</s>",
        "<0xC3>",
        "<0xA9>",
        *"▁abc",
        "ab",
        "bc",
        "▁a",
    ],
    "tokenizer.ggml.scores": [0.0] * 5 + [-9.0] * 4 + [-2.0, -1.0, -3.0],
    "tokenizer.ggml.token_type": [2, 3, 3, 6, 6] + [1] * 7,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}


def shown(tokenizer, tokens):
    return [tokenizer.codec.id_to_token(token) for token in tokens]


@pytest.mark.parametrize(
    ("pre", "text", "texts"),
    [
        ("gpt-2", "1234 a<|end|>", ["123", "4", "Ġa", "<|end|>"]),
        ("smollm", "1234 a", ["1", "2", "3", "4", "Ġa"]),
        ("llama-bpe", "1234 a\n\n", ["123", "4", "Ġa", "\u010a\u010a"]),
        ("qwen2", "123 a", ["1", "2", "3", "Ġa"]),
        ("gpt-2", "a\n\n1", ["a", "\u010a", "\u010a", "1"]),
    ],
)
def test_text_is_split_before_bytes_merge(pre, text, texts):
    tokenizer = from_gguf({**BYTES, "tokenizer.ggml.pre": pre})
    tokens = tokenizer.encode(text)
    assert shown(tokenizer, tokens) == texts
    assert tokenizer.decode(tokens) == text.replace("<|end|>", "")
    assert (tokenizer.ends, tokenizer.start) == ({0}, None)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("abc", ["<s>", "▁a", "bc"]),  # bc has the highest score, then ▁a
        ("b abc", ["<s>", "▁", "b", "▁a", "bc"]),
        ("aé", ["<s>", "▁a", "<0xC3>", "<0xA9>"]),
    ],
)
def test_pieces_merge_in_the_order_of_their_scores(text, texts):
    tokenizer = from_gguf(PIECES)
    tokens = tokenizer.encode(text)
    assert shown(tokenizer, tokens) == texts
    assert tokenizer.decode(tokens) == text
    assert tokenizer.encode(text, start=False) == tokens[1:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokenizer.ggml.model": "bert"}, "the tokenizer is 'bert'"),
        ({"tokenizer.ggml.pre": "unheard"}, "text is split by 'unheard'"),
    ],
)
def test_tokenizers_that_are_not_implemented(change, words):
    with pytest.raises(llm.ModelError, match=words):
        from_gguf(BYTES | change)


def test_a_folder_has_the_tokenizer_of_a_file(tmp_path):
    found = weights("llama")
    folder = llm.load(write_folder(tmp_path / "model", "llama", found)).tokenizer
    write_gguf(tmp_path / "model.gguf", "llama", found)
    file = llm.load(tmp_path / "model.gguf").tokenizer
    text = "<|start|>the hello  é"
    assert folder.encode(text) == file.encode(text)
    assert folder.ends == file.ends == {1}
    messages = [{"role": "user", "content": "a"}]
    assert folder.conversation(messages) == file.conversation(messages)


def test_a_template_may_be_missing_or_refuse():
    own = {**BYTES, "tokenizer.ggml.pre": "gpt-2"}
    with pytest.raises(llm.ModelError, match="no chat template"):
        from_gguf(own).conversation([])
    own["tokenizer.chat_template"] = "{{ raise_exception('no system') }}"
    with pytest.raises(llm.ModelError, match="no system"):
        from_gguf(own).conversation([])


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "model.gguf"
    write_gguf(path, "llama", weights("llama"), stored=Kind.Q8_0)
    whole = path.read_bytes()
    for content in (b"", b"GGUX" + whole[4:], whole[:1000], whole[:20_000], whole[:-99]):
        path.write_bytes(content)
        with pytest.raises(llm.ModelError, match="no complete GGUF file"):
            llm.load(path)
    write_gguf(path, "llama", weights("llama"), architecture="mamba")
    with pytest.raises(llm.ModelError, match="'mamba'"):
        llm.load(path)
    folder = write_folder(tmp_path / "model", "llama", weights("llama"), model_type="bert")
    with pytest.raises(llm.ModelError, match="'bert'"):
        llm.load(folder)
    few = {name: each for name, each in weights("gpt2").items() if name != "h.1.ln_2.weight"}
    folder = write_folder(tmp_path / "few", "gpt2", few)
    with pytest.raises(llm.ModelError, match=r"blk.1.ffn_norm.weight is missing"):
        llm.load(folder)
