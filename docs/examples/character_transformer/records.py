"""The text to learn: this project's decision records, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORDS = Path(__file__).parents[2] / "adr"
HELD_OUT = 0.1  # of the text, at its end


@dataclass(frozen=True)
class Corpus:
    """A text as numbers: positions in ``alphabet``."""

    alphabet: str
    train: NDArray[np.int32]
    held_out: NDArray[np.int32]

    def read(self, numbers: NDArray[np.int32]) -> str:
        """Return the text that ``numbers`` stand for."""
        return "".join(self.alphabet[number] for number in numbers.tolist())


def load(folder: Path = RECORDS) -> Corpus:
    """Read the records in order; drop the few characters that are not ASCII."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("0*.md"))]
    text = "\n".join(texts).encode("ascii", errors="ignore").decode()
    alphabet = "".join(sorted(set(text)))
    numbers = np.array([alphabet.index(character) for character in text], np.int32)
    end = round(len(numbers) * (1 - HELD_OUT))
    return Corpus(alphabet, numbers[:end], numbers[end:])


def pieces(text: NDArray[np.int32], context: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return pieces [n, context] that overlap by half, and what follows each character."""
    found = np.lib.stride_tricks.sliding_window_view(text, context + 1)[:: context // 2]
    return found[:, :-1], found[:, 1:]


def by_frequency(corpus: Corpus) -> float:
    """Return the loss on held-out text of somebody who knows how frequent each character is."""
    counts = np.bincount(corpus.train, minlength=len(corpus.alphabet)) + 1.0
    return float(-np.mean(np.log(counts / counts.sum())[corpus.held_out]))
