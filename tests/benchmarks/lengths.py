"""Sizes that vary: each call gets a sequence of a length that was not there before.

Beside it, the same with lengths that come again, so that the cost of a new length is the
difference.
"""

from __future__ import annotations

import math
import random
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, compiling, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Call = Callable[[], object]

WIDTH = 64
NEW = range(17, 1017)
KNOWN = range(64, 72)


def block(x: Any, weights: Sequence[Any]) -> Any:
    """An attention block of one head, with an MLP, layer norms and residuals."""
    *wide, down, up = weights
    normal = tp.nn.layer_norm(x)
    query, key, value = (tp.matmul(normal, each) for each in wide[:3])
    scores = tp.matmul(query, tp.matrix_transpose(key)) / math.sqrt(WIDTH)
    x = x + tp.matmul(tp.matmul(tp.nn.softmax(scores), value), wide[3])
    return x + tp.matmul(tp.nn.gelu(tp.matmul(tp.nn.layer_norm(x), down)), up)


def torch_block(x: Any, weights: Sequence[Any]) -> Any:
    """The same block, by PyTorch."""
    import torch.nn.functional as nn

    *wide, down, up = weights
    normal = nn.layer_norm(x, (WIDTH,))
    query, key, value = (normal @ each for each in wide[:3])
    scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH)
    x = x + (scores.softmax(-1) @ value) @ wide[3]
    return x + nn.gelu(nn.layer_norm(x, (WIDTH,)) @ down) @ up


def varied(lengths: range, title: str) -> Workload:
    """The block with sequences of these lengths in any order, each contender with its own."""
    rng = np.random.default_rng(0)
    shapes = [*[(WIDTH, WIDTH)] * 4, (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    weights = [(rng.standard_normal(each) / 8).astype(np.float32) for each in shapes]
    longest = rng.standard_normal((1, lengths[-1], WIDTH)).astype(np.float32)
    order = random.Random(0).sample(lengths, len(lengths))

    def run(function: Callable[..., Any], convert: Callable[[Any], Any]) -> Call:
        known, upcoming = [convert(each) for each in weights], cycle(order)
        return lambda: function(convert(longest[:, : next(upcoming)]), known)

    contenders = {
        f"tensorplug {each}": on(each, lambda: run(block, tp.asarray)) for each in backends()
    }
    for each in compiling():
        contenders[f"tensorplug {each} compiled"] = on(
            each, lambda: run(tp.compile(block), tp.asarray)
        )
    if available("torch"):
        contenders["torch"] = run(torch_block, torch_tensor)
    first = next(iter(contenders))
    return Workload(title, "torch" if "torch" in contenders else first, contenders)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of each workload."""
    yield "new_lengths", lambda: varied(NEW, "block of attention, new lengths")
    yield "known_lengths", lambda: varied(KNOWN, "block of attention, eight lengths")
