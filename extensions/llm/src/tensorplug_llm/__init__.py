"""Language models on every backend: of Llama's and GPT-2's kind, from GGUF or safetensors.

``import tensorplug_llm as llm``, then ``llm.load`` and ``llm.generate``.
"""

from __future__ import annotations

from tensorplug_llm.configuration import Configuration, Matrix, ModelError
from tensorplug_llm.generation import Generation, generate, stream
from tensorplug_llm.model import Model, load
from tensorplug_llm.tokens import Tokenizer

__all__ = [
    "Configuration",
    "Generation",
    "Matrix",
    "Model",
    "ModelError",
    "Tokenizer",
    "generate",
    "load",
    "stream",
]
