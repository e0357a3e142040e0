"""From named weights to the tree of parameters that the decoder takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_llm.configuration import Configuration, Matrix, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Place = Callable[[Any], Any]


def assemble(
    weight: Callable[[str], Matrix | None], configuration: Configuration, place: Place
) -> dict[str, Any]:
    """Return the parameters as a tree of tensors.

    Args:
        weight: returns a weight by GGUF's name, or None if the file has none.
        configuration: of the model.
        place: puts a part of the tree on the device, so that the host's memory has one at a time.

    Raises:
        ModelError: a weight is missing.

    """

    def required(name: str) -> Matrix:
        found = weight(f"{name}.weight")
        if found is None:
            raise ModelError(f"the weight {name}.weight is missing")
        bias = weight(f"{name}.bias")
        return found if bias is None else replace(found, bias=_float32(bias))

    def norm(name: str) -> dict[str, Any]:
        found = required(name)
        scale = {"scale": _float32(found)}
        return scale if found.bias is None else {**scale, "bias": found.bias}

    def block(prefix: str) -> dict[str, Any]:
        whole = weight(f"{prefix}.attn_qkv.weight") is not None
        inputs = ["attn_qkv"] if whole else ["attn_q", "attn_k", "attn_v"]
        wide = ["ffn_gate", "ffn_up"] if configuration.llama else ["ffn_up"]
        tree = {
            "attention_norm": norm(f"{prefix}.attn_norm"),
            "attention_in": _joined([required(f"{prefix}.{name}") for name in inputs]),
            "attention_out": required(f"{prefix}.attn_output"),
            "feed_norm": norm(f"{prefix}.ffn_norm"),
            "feed_in": _joined([required(f"{prefix}.{name}") for name in wide]),
            "feed_out": required(f"{prefix}.ffn_down"),
        }
        return {name: place(part) for name, part in tree.items()}

    parameters = {
        "embedding": place(required("token_embd")),
        "blocks": [block(f"blk.{index}") for index in range(configuration.layers)],
        "norm": place(norm("output_norm")),
    }
    if not configuration.llama:
        parameters["positions"] = place(_float32(required("position_embd")))
    if weight("output.weight") is not None:  # else the embedding's rows are those of the output
        parameters["output"] = place(required("output"))
    return parameters


def _float32(matrix: Matrix) -> np.ndarray:
    if matrix.scale is not None:
        raise ModelError("a bias, a norm or a table of positions is quantized")
    return np.array(matrix.values, np.float32)  # a view would keep the whole file mapped


def _joined(matrices: Sequence[Matrix]) -> list[Matrix]:
    """Return one weight for all, whose product is that of all side by side, if they are alike."""
    names = ("values", "scale", "offset", "bias")
    forms = [
        [matrix.packed, *(getattr(getattr(matrix, name), "dtype", None) for name in names)]
        for matrix in matrices
    ]
    if any(form != forms[0] for form in forms):
        return list(matrices)
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(matrix, name) for matrix in matrices])
        for name in names
        if getattr(matrices[0], name) is not None
    }
    return [Matrix(packed=matrices[0].packed, **joined)]
