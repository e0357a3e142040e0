"""Which token comes next."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tensorplug as tp
from tensorplug.errors import ArgumentError


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen from the scores of all. ``sampling`` makes and checks one.

    None leaves a step out. So a compiled function has a program for each combination of steps,
    and none for each number.
    """

    temperature: float | None
    top_k: int | None
    top_p: float | None
    repetition: float | None


def sampling(temperature: float, top_k: int, top_p: float, repetition: float) -> Sampling:
    """Return the steps that are needed.

    Args:
        temperature: divides scores; 0 takes the token with the highest score.
        top_k: draws among this many tokens with the highest scores; 0 for all.
        top_p: draws among the fewest tokens whose probabilities sum to this, in (0, 1].
        repetition: divides positive scores of tokens that the text has already, and multiplies
            negative ones; 1 changes nothing.

    Raises:
        ArgumentError: a number is out of range.

    Sources: top_p: "The curious case of neural text degeneration" (Holtzman et al., 2020);
    repetition: "CTRL" (Keskar et al., 2019).

    """
    for name, value, allowed in (
        ("temperature", temperature, 0 <= temperature < math.inf),
        ("top_k", top_k, top_k >= 0),
        ("top_p", top_p, 0 < top_p <= 1),
        ("repetition", repetition, 0 < repetition < math.inf),
    ):
        if not allowed:
            raise ArgumentError(f"{name}={value} is out of range")
    return Sampling(
        float(temperature) or None,
        top_k or None,
        None if top_p == 1 else float(top_p),
        None if repetition == 1 else float(repetition),
    )


def choose(
    scores: tp.Tensor, present: tp.Tensor | None, key: tp.Tensor, sampling: Sampling
) -> tp.Tensor:
    """Return a token for each text, [batch] of int32.

    Args:
        scores: [batch, vocabulary].
        present: which tokens the text has, booleans of that shape; needed for ``repetition``.
        key: of ``tensorplug.random``.
        sampling: how.

    """
    if present is not None and sampling.repetition is not None:
        rate = sampling.repetition
        scores = tp.where(present, tp.where(scores > 0, scores / rate, scores * rate), scores)
    if sampling.temperature is None:
        return tp.argmax(scores, axis=-1)
    scores = scores / sampling.temperature
    if sampling.top_k is None and sampling.top_p is None:
        return tp.random.categorical(key, scores)
    most = scores.shape[-1]
    scores, tokens = tp.topk(scores, min(sampling.top_k or most, most))
    if sampling.top_p is not None:
        shares = tp.nn.softmax(scores)
        before = tp.cumulative_sum(shares, axis=-1) - shares
        scores = tp.where(before < sampling.top_p, scores, -tp.inf)
    drawn = tp.random.categorical(key, scores)
    return tp.take_along_axis(tokens, drawn[:, None], axis=-1)[:, 0]
