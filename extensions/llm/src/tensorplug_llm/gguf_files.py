"""GGUF, the format of llama.cpp: one file with weights, sizes and the tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf import dequantize

from tensorplug_llm.assembling import assemble
from tensorplug_llm.configuration import Configuration, Matrix, ModelError
from tensorplug_llm.gguf_header import read_header
from tensorplug_llm.tokens import Tokenizer, from_gguf

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorplug_llm.assembling import Place

BLOCK: Final = 32  # numbers that share a scale
_PACKED: Final[dict[Kind, Any]] = {Kind.Q4_0: "int4", Kind.Q4_1: "uint4"}
_SCALES: Final = {Kind.Q4_0: 1, Kind.Q4_1: 2, Kind.Q8_0: 1}  # float16 before a block's integers


def read(path: Path, place: Place) -> tuple[Configuration, dict[str, Any], Tokenizer]:
    """Read a model; ``place`` puts its weights, which are NumPy arrays, on the device.

    Raises:
        ModelError: the file is not GGUF, or of an architecture or with a tokenizer for which
            there is nothing here.
        OSError: the file cannot be read.

    """
    metadata, tensors = read_header(path)

    def weight(name: str) -> Matrix | None:
        tensor = tensors.get(name)
        if tensor is None:
            return None
        found = matrix(tensor.data, tensor.kind)
        if not np.shares_memory(found.values, tensor.data):
            tensor.forget()
        turned = configuration.llama and (".attn_q." in name or ".attn_k." in name)
        return _halved(found, configuration.head_size) if turned else found

    factors = tensors.get("rope_freqs.weight")
    configuration = configure(metadata, None if factors is None else factors.data)
    return configuration, assemble(weight, configuration, place), from_gguf(metadata)


def configure(metadata: Mapping[str, Any], factors: Any = None) -> Configuration:
    """Return the sizes that the metadata give; ``factors`` divide rotary frequencies."""
    kind = metadata["general.architecture"]
    if kind not in {"llama", "gpt2"}:
        raise ModelError(f"the architecture is {kind!r}; llama and gpt2 are implemented")
    llama = kind == "llama"
    own = {
        name.removeprefix(f"{kind}."): value
        for name, value in metadata.items()
        if name.startswith(f"{kind}.")
    }
    width, heads = own["embedding_length"], own["attention.head_count"]
    if own.get("rope.scaling.type", "none") not in {"none", "linear"}:
        raise ModelError(f"rotary positions are scaled by {own['rope.scaling.type']!r}")
    size = own.get("attention.key_length", width // heads)
    turned = own.get("rope.dimension_count", size) if llama else 0
    if turned not in {0, size}:
        raise ModelError(f"only {turned} of {size} features of a head are rotary")
    base = own.get("rope.freq_base", 10000.0) ** (-np.arange(0, turned, 2) / size if llama else 1)
    frequencies = base / own.get("rope.scaling.factor", 1.0)
    if factors is not None:
        frequencies /= factors
    norm = "attention.layer_norm_rms_epsilon" if llama else "attention.layer_norm_epsilon"
    return Configuration(
        layers=own["block_count"],
        width=width,
        heads=heads,
        key_heads=own.get("attention.head_count_kv", heads),
        head_size=size,
        vocabulary=len(metadata["tokenizer.ggml.tokens"]),
        context=own["context_length"],
        epsilon=own[norm],
        llama=llama,
        frequencies=tuple(np.atleast_1d(frequencies).tolist()) if llama else (),
    )


def _halved(matrix: Matrix, size: int) -> Matrix:
    """Return rows of queries or keys with features i and i + size / 2 of a head as pairs.

    GGUF stores neighbours as pairs.
    """

    def moved(rows: Any) -> Any:
        if rows is None:
            return None
        pairs = rows.reshape(-1, size // 2, 2, *rows.shape[1:])
        return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)

    values, scale, offset = map(moved, (matrix.values, matrix.scale, matrix.offset))
    return Matrix(values, scale, offset, packed=matrix.packed)


def matrix(data: np.ndarray, kind: Kind) -> Matrix:
    """Return a weight as it is stored; only the order of numbers in 4 bits changes.

    Byte i of a block in GGUF has numbers i and i + 16; here, it has 2 i and 2 i + 1.

    Args:
        data: [..., outputs, bytes], or floats, as ``read_header`` returns them.
        kind: of the numbers. Q4_0 stands for ``scale * (q - 8)``, Q4_1 for
            ``scale * q + offset``, Q8_0 for ``scale * q``. Floats stay floats, and other kinds
            become float32.

    """
    if kind is Kind.BF16:
        import ml_dtypes  # imported for such files only

        return Matrix(data.view(ml_dtypes.bfloat16))
    if kind not in _SCALES:
        return Matrix(data if kind in {Kind.F32, Kind.F16} else dequantize(data, kind))
    scales = _SCALES[kind]
    narrow = kind is not Kind.Q8_0
    stored = data.reshape(*data.shape[:-1], -1, 2 * scales + (BLOCK // 2 if narrow else BLOCK))
    floats = np.ascontiguousarray(stored[..., : 2 * scales]).view(np.float16)
    integers = stored[..., 2 * scales :]
    if narrow:
        if kind is Kind.Q4_0:
            integers = integers ^ np.uint8(0x88)  # q - 8 as two's complement
        # The low halves of neighbouring bytes make one byte, and the high halves another.
        even, odd = integers[..., 0::2], integers[..., 1::2]
        low, high = even & 15 | odd << 4, even >> 4 | odd & 240
        integers = np.concatenate([low, high], axis=-1)
    values = np.ascontiguousarray(integers).reshape(*data.shape[:-1], -1)
    return Matrix(
        values if narrow else values.view(np.int8),
        np.ascontiguousarray(floats[..., 0]),
        np.ascontiguousarray(floats[..., 1]) if scales == 2 else None,
        packed=_PACKED.get(kind),
    )
