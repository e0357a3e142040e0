"""Text to tokens and back, and the text of a conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Codec

from tensorplug_llm.configuration import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_WORDS: Final = (  # of Llama 3 and Qwen 2, which differ in how many digits stay together
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CONTROL: Final = 3  # types of tokens in GGUF that are no result of merging
_OWN: Final = 4


@dataclass(frozen=True)
class Tokenizer:
    """Text to tokens and back.

    Args:
        codec: of the package ``tokenizers``.
        ends: tokens at which an answer ends.
        start: the token before each text that is no conversation; None if there is none.
        template: of a conversation, in Jinja; None if the model has none.
        texts: of special tokens, by the names that the template uses, such as "bos_token".

    """

    codec: Codec
    ends: frozenset[int]
    start: int | None
    template: str | None
    texts: Mapping[str, str]

    def encode(self, text: str, *, start: bool = True) -> list[int]:
        """Return the tokens of a text; ``start``: with the token that begins a text."""
        found: list[int] = self.codec.encode(text, add_special_tokens=False).ids
        return [self.start, *found] if start and self.start is not None else found

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        text: str = self.codec.decode(list(tokens), skip_special_tokens=True)
        return text

    def conversation(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the text of a conversation, up to where the assistant's answer begins.

        Args:
            messages: dicts with a "role" ("system", "user", "assistant") and a "content".

        Raises:
            ModelError: the model has no template, or the template refuses the messages.

        """
        if self.template is None:
            raise ModelError("the model has no chat template: give it a text to go on with")
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        try:
            return environment.from_string(self.template).render(
                messages=messages, add_generation_prompt=True, **self.texts
            )
        except TemplateError as error:
            raise ModelError(f"the chat template does not take these messages: {error}") from error


def _refuse(message: str) -> None:
    raise TemplateError(message)


def from_gguf(metadata: Mapping[str, Any]) -> Tokenizer:
    """Build the tokenizer that the metadata of a GGUF file describe.

    Raises:
        ModelError: there is none, or of a kind that is not implemented.

    """
    own = {
        name.removeprefix("tokenizer.ggml."): value
        for name, value in metadata.items()
        if name.startswith("tokenizer.ggml.")
    }
    makers = {"gpt2": _of_bytes, "llama": _of_pieces}
    if own.get("model") not in makers:
        raise ModelError(f"the tokenizer is {own.get('model')!r}, not one of {[*makers]}")
    codec = makers[own["model"]](own)
    texts = own["tokens"]
    codec.add_tokens(
        [
            AddedToken(text, normalized=False, special=kind == _CONTROL)
            for text, kind in zip(texts, own["token_type"], strict=True)
            if kind in {_CONTROL, _OWN}
        ]
    )
    named = {
        name: int(own[f"{name}_token_id"])
        for name in ("bos", "eos", "eot", "eom")
        if f"{name}_token_id" in own
    }
    starts = own.get("add_bos_token", own["model"] == "llama")
    return Tokenizer(
        codec,
        frozenset(named[name] for name in ("eos", "eot", "eom") if name in named),
        named.get("bos") if starts else None,
        metadata.get("tokenizer.chat_template"),
        {f"{name}_token": texts[token] for name, token in named.items()},
    )


def _of_bytes(own: Mapping[str, Any]) -> Codec:
    """Byte pairs that merge in the order of a list, as in GPT-2."""
    whole: Any = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare: Any = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    splitters = {
        "gpt-2": lambda: whole,
        "smollm": lambda: _sequence(pre_tokenizers.Digits(individual_digits=True), whole),
        "llama-bpe": lambda: _sequence(_split(_WORDS % "{1,3}"), bare),
        "qwen2": lambda: _sequence(_split(_WORDS % ""), bare),
    }
    if own.get("pre") not in splitters:
        raise ModelError(f"text is split by {own.get('pre')!r}, not one of {[*splitters]}")
    vocabulary = {text: index for index, text in enumerate(own["tokens"])}
    merges = [tuple(pair.split(" ")) for pair in own["merges"]]
    codec = Codec(
        models.BPE(vocab=vocabulary, merges=merges, ignore_merges=own["pre"] == "llama-bpe")
    )
    codec.pre_tokenizer = splitters[own["pre"]]()
    codec.decoder = decoders.ByteLevel()
    return codec


def _sequence(*steps: Any) -> Any:
    return pre_tokenizers.Sequence(list(steps))


def _split(pattern: str) -> Any:
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def _of_pieces(own: Mapping[str, Any]) -> Codec:
    """Pieces that merge in the order of their scores, as SentencePiece does for Llama 1 and 2."""
    scores = dict(zip(own["tokens"], own["scores"], strict=True))
    vocabulary = {text: index for index, text in enumerate(own["tokens"])}
    found = [
        (-scores[text], vocabulary[text[:at]], (text[:at], text[at:]))
        for text in vocabulary
        for at in range(1, len(text))
        if text[:at] in vocabulary and text[at:] in vocabulary
    ]
    merges = [pair for _, _, pair in sorted(found)]
    codec = Codec(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True))
    prefix = own.get("add_space_prefix", True)
    space = [normalizers.Replace(" ", "▁")]
    codec.normalizer = normalizers.Sequence([normalizers.Prepend("▁")] * prefix + space)
    strip = [decoders.Strip(content=" ", left=1)] * prefix
    codec.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    return codec


def from_folder(folder: Path, settings: Mapping[str, Any]) -> Tokenizer:
    """Read ``tokenizer.json``, and what other files of the folder say about special tokens."""
    codec = Codec.from_file(str(folder / "tokenizer.json"))
    names = ("tokenizer_config.json", "generation_config.json")
    options, generation = (
        json.loads((folder / name).read_text(encoding="utf-8")) if (folder / name).exists() else {}
        for name in names
    )
    ends = generation.get("eos_token_id", settings.get("eos_token_id"))
    whole = codec.encode("", add_special_tokens=True).ids
    template = folder / "chat_template.jinja"
    texts = {name: options.get(name) for name in ("bos_token", "eos_token")}
    return Tokenizer(
        codec,
        frozenset(ends if isinstance(ends, list) else () if ends is None else (ends,)),
        whole[0] if whole else None,
        template.read_text(encoding="utf-8")
        if template.exists()
        else options.get("chat_template"),
        {
            name: text["content"] if isinstance(text, dict) else text
            for name, text in texts.items()
            if text is not None
        },
    )
