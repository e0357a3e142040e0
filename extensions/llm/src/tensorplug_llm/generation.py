"""Texts that go on: token by token, for one prompt or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np
from tokenizers.decoders import DecodeStream

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug_llm.decoder import empty_cache
from tensorplug_llm.sampling import sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_llm.model import Model

CHUNK: Final = 512  # the most tokens of a prompt that one call reads
_LEAST: Final = 16  # shorter prompts share a program
_SLOTS: Final = 256  # sizes of caches are multiples of it, so that texts share programs


class Generation:
    """Answers to several prompts at once, as an iterator over their pieces.

    Each item is a list with a piece of text for each prompt, which may be "". What the model is
    asked first happens at the first item.

    Args:
        model: the model.
        prompts: tokens of each prompt, one or more.
        max_tokens: of each answer, at least 1.
        stop: texts at which an answer ends; they are not part of it.
        key: of ``tensorplug.random``, or an integer; the same key gives the same answers.
        temperature, top_k, top_p, repetition: see ``generate``.

    Attributes:
        reasons: why each answer ended: "stop", at a stop word or at the model's own end; or
            "length", after ``max_tokens`` or at the end of the model's context; None before.
        counts: the number of tokens of each answer, so far.

    Raises:
        ArgumentError: a number is out of range, or a prompt is empty or does not fit in the
            model's context.

    """

    def __init__(
        self,
        model: Model,
        prompts: Sequence[Sequence[int]],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition: float = 1.0,
        stop: Sequence[str] = (),
        key: Any = 0,
    ) -> None:
        context = model.configuration.context
        for prompt in prompts:
            if not 0 < len(prompt) < context:
                raise ArgumentError(
                    f"a prompt has {len(prompt)} tokens; from 1 to {context - 1} are allowed"
                )
        if not prompts or max_tokens < 1:
            raise ArgumentError(f"{len(prompts)} prompts with max_tokens={max_tokens}")
        self._model = model
        self._prompts = prompts
        self._most = max_tokens
        self._sampling = sampling(temperature, top_k, top_p, repetition)
        self._key = tp.random.key(key) if isinstance(key, int) else key
        self._texts = [_Text(model, tuple(filter(None, stop))) for _ in prompts]
        self.reasons: list[str | None] = [None] * len(prompts)
        self.counts = [0] * len(prompts)

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the next piece of each answer, until all have ended."""
        ends = self._model.tokenizer.ends
        context = self._model.configuration.context
        for tokens in self._tokens():
            pieces = []
            for row, (token, text) in enumerate(zip(tokens, self._texts, strict=True)):
                if self.reasons[row] is not None:
                    pieces.append("")
                    continue
                self.counts[row] += 1
                piece, stopped = ("", True) if token in ends else text.further(token)
                full = self.counts[row] == self._most
                if stopped:
                    self.reasons[row] = "stop"
                elif full or len(self._prompts[row]) + self.counts[row] == context:
                    self.reasons[row] = "length"
                if self.reasons[row] is not None:
                    piece += text.held
                pieces.append(piece)
            yield pieces
            if None not in self.reasons:
                return

    def _tokens(self) -> Iterator[list[int]]:
        """Yield the next token of each text, without end."""
        model, batch = self._model, len(self._prompts)
        lengths = np.asarray([len(prompt) for prompt in self._prompts], np.int32)
        starts = range(0, int(lengths.max()), CHUNK)
        rest = _padded(int(lengths.max()) - starts[-1])
        slots = max(int(lengths.max()) + self._most, starts[-1] + rest)
        vocabulary = model.configuration.vocabulary
        present = np.zeros((batch, vocabulary), np.bool_)
        prompts = np.zeros((batch, starts[-1] + rest), np.int32)
        for row, prompt in enumerate(self._prompts):
            prompts[row, : len(prompt)] = prompt
            present[row, prompt] = True
        latest = np.zeros(batch, np.int32)
        with tp.use_backend(model.device):
            cache = empty_cache(model.configuration, batch, -(-slots // _SLOTS) * _SLOTS)
            known = None if self._sampling.repetition is None else tp.asarray(present)
            for start in starts:
                chunk = prompts[:, start : start + CHUNK]
                last = np.clip(lengths - 1 - start, 0, chunk.shape[1] - 1)
                position = np.full(batch, start, np.int32)
                drawn, cache, known = self._advance(cache, chunk, position, last, known)
                ends = (start < lengths) & (lengths <= start + CHUNK)
                latest = np.where(ends, drawn.numpy(), latest)
        while True:
            yield latest.tolist()
            with tp.use_backend(model.device):  # not across ``yield``: it is the caller's
                drawn, cache, known = self._advance(
                    cache, latest[:, None], lengths, np.zeros(batch, np.int32), known
                )
                latest, lengths = drawn.numpy(), lengths + 1

    def _advance(
        self, cache: Any, tokens: np.ndarray, position: np.ndarray, last: np.ndarray, known: Any
    ) -> tuple[tp.Tensor, Any, Any]:
        last = last.astype(np.int32)
        result: tuple[tp.Tensor, Any, Any] = self._model.advance(
            self._model.leaves, cache, tokens, position, last, known, self._key, self._sampling
        )
        return result


def _padded(count: int) -> int:
    """Return how many tokens stand for ``count``: few sizes, so that prompts share programs."""
    size = _LEAST
    while size < count:
        size *= 2
    return size


class _Text:
    """An answer as it grows: characters may need several tokens, and stop words several pieces."""

    def __init__(self, model: Model, stop: tuple[str, ...]) -> None:
        self._codec = model.tokenizer.codec
        self._stream = DecodeStream(skip_special_tokens=True)
        self._stop = stop
        self.held = ""  # what may be the beginning of a stop word

    def further(self, token: int) -> tuple[str, bool]:
        """Return the text that a token brings, and whether a stop word ends it."""
        text = self.held + (self._stream.step(self._codec, token) or "")
        found = [place for word in self._stop if (place := text.find(word)) >= 0]
        if found:
            self.held = ""
            return text[: min(found)], True
        sizes = (
            size
            for word in self._stop
            for size in range(1, len(word))
            if text.endswith(word[:size])
        )
        shown = len(text) - max(sizes, default=0)
        self.held = text[shown:]
        return text[:shown], False


@overload
def stream(model: Model, prompt: str, **options: Any) -> Iterator[str]: ...
@overload
def stream(model: Model, prompt: Sequence[str], **options: Any) -> Iterator[list[str]]: ...
def stream(model: Model, prompt: str | Sequence[str], **options: Any) -> Iterator[Any]:
    """Yield the pieces of ``generate`` as they come.

    Args:
        model: the model.
        prompt: a text; or several, for which each item is a list with a piece for each.
        options: those of ``generate``.

    Examples:
        >>> for piece in llm.stream(model, "Once upon a time"):  # doctest: +SKIP
        ...     print(piece, end="", flush=True)

    """
    single = isinstance(prompt, str)
    texts = [prompt] if isinstance(prompt, str) else prompt
    generation = Generation(model, [model.tokenizer.encode(text) for text in texts], **options)
    return (pieces[0] if single else pieces for pieces in generation)


@overload
def generate(model: Model, prompt: str, **options: Any) -> str: ...
@overload
def generate(model: Model, prompt: Sequence[str], **options: Any) -> list[str]: ...
def generate(model: Model, prompt: str | Sequence[str], **options: Any) -> str | list[str]:
    """Return how a text goes on, or several texts.

    Args:
        model: the model.
        prompt: a text, or several, which are read together.
        options: ``max_tokens``: of each answer, 256 by default. ``temperature``: 0, the default,
            takes the most likely token; above, tokens are drawn, with scores divided by it.
            ``top_k``: among this many most likely tokens; 0 for all. ``top_p``: among the fewest
            tokens whose probabilities sum to it; 1 for all. ``repetition``: above 1, tokens that
            a text has already become less likely. ``stop``: texts at which an answer ends.
            ``key``: of ``tensorplug.random``, or an integer; the same key gives the same answer.

    Raises:
        ArgumentError: a number is out of range, or a prompt is empty or does not fit in the
            model's context.

    Examples:
        >>> llm.generate(model, ["One, two,", "A, b,"], max_tokens=6)  # doctest: +SKIP
        [' three, four, five', ' c, d, e,']

    """
    if isinstance(prompt, str):
        return "".join(stream(model, prompt, **options))
    return ["".join(pieces) for pieces in zip(*stream(model, prompt, **options), strict=True)]
