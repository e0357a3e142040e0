"""A model: its sizes, weights and tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import CopyNeededError
from tensorplug_llm import gguf_files, hugging_face
from tensorplug_llm.configuration import Configuration, Matrix
from tensorplug_llm.decoder import empty_cache, floats, logits, step
from tensorplug_llm.sampling import choose

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np

    from tensorplug.typing import DTypeLike
    from tensorplug_llm.sampling import Sampling
    from tensorplug_llm.tokens import Tokenizer


@dataclass(frozen=True)
class Model:
    """A language model on a device.

    Args:
        name: of its file or folder.
        device: where its weights are, such as "cpu".
        configuration: its sizes.
        parameters: its weights, a tree.
        tokenizer: its tokenizer.

    """

    name: str
    device: str
    configuration: Configuration
    parameters: dict[str, Any] = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    leaves: list[tp.Tensor] = field(init=False, repr=False)  # those of ``parameters``
    advance: Any = field(init=False, repr=False)  # ``step``, then ``choose``: compiled

    def __post_init__(self) -> None:
        """Compile a step, once for each model.

        The compiled function takes a list: to read a tree of 30 blocks takes as long as half of
        the weights.
        """
        configuration, tree = self.configuration, self.parameters
        listed: list[tp.Tensor] = []
        tp.tree_map(listed.append, tree)

        def advance(
            leaves: list[tp.Tensor],
            cache: list[tp.Tensor],
            tokens: tp.Tensor,
            positions: tp.Tensor,
            last: tp.Tensor,
            present: tp.Tensor | None,
            key: tp.Tensor,
            sampling: Sampling,
        ) -> tuple[tp.Tensor, list[tp.Tensor], tp.Tensor | None]:
            each = iter(leaves)
            parameters = tp.tree_map(lambda _: next(each), tree)
            features, cache = step(configuration, parameters, tokens, cache, positions)
            features = tp.take_along_axis(features, last[:, None, None], axis=1)[:, 0]
            scores = logits(configuration, parameters, features)
            if present is not None and tokens.shape[1] == 1:  # those of a prompt are there
                present = present | tp.one_hot(tokens[:, 0], scores.shape[-1], dtype="bool")
            key = tp.random.fold_in(key, positions[0])
            return choose(scores, present, key, sampling), cache, present

        object.__setattr__(self, "leaves", listed)
        object.__setattr__(self, "advance", tp.compile(advance, donate=("cache", "present")))

    def logits(self, tokens: Any) -> tp.Tensor:
        """Return the scores of each next token, in float32.

        Args:
            tokens: [batch, n], whole texts of the same length.

        Returns:
            [batch, n, vocabulary]: at i, of the token that follows the first i + 1.

        """
        with tp.use_backend(self.device):
            tokens = tp.asarray(tokens, dtype="int32")
            batch, n = tokens.shape
            cache = empty_cache(self.configuration, batch, n)
            start = tp.zeros((batch,), dtype="int32")
            features, _ = step(self.configuration, self.parameters, tokens, cache, start)
            return logits(self.configuration, self.parameters, features)


def load(path: str | PathLike[str], *, dtype: DTypeLike | None = None) -> Model:
    """Read a model, to the active device.

    Args:
        path: a GGUF file; or a folder in Hugging Face's layout, with config.json,
            tokenizer.json and safetensors files. The architecture is Llama's or GPT-2's.
        dtype: of matrices, a floating one. None keeps them as they are stored: quantized ones
            quantized, floats of 16 bits in 16 bits.

    Raises:
        ModelError: the file is no such model.
        OSError: the file cannot be read.

    Examples:
        >>> model = llm.load("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> llm.generate(model, "The capital of France is", max_tokens=5)  # doctest: +SKIP
        ' Paris. The city is'

    """
    path = Path(path)
    device = tp.zeros(()).device
    read = (hugging_face if path.is_dir() else gguf_files).read
    configuration, parameters, tokenizer = read(path, lambda part: _placed(part, dtype))
    return Model(path.name, device, configuration, parameters, tokenizer)


def _placed(tree: Any, dtype: DTypeLike | None) -> Any:
    """Return weights on the device; in the host's memory, without a copy."""
    if isinstance(tree, dict):
        return {name: _placed(each, dtype) for name, each in tree.items()}
    if isinstance(tree, list):
        return [_placed(each, dtype) for each in tree]
    placed = tp.tree_map(_tensor, tree)
    if dtype is None or not isinstance(placed, Matrix):
        return placed
    return Matrix(tp.astype(floats(placed), dtype), bias=placed.bias)


def _tensor(array: np.ndarray) -> tp.Tensor:
    try:
        return tp.asarray(array, copy=False)
    except CopyNeededError:
        return tp.asarray(array)
