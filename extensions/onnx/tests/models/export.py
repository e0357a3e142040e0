"""Write the models of this folder: small networks of PyTorch, exported both ways.

Needs torch and onnxscript. Each file holds a model with random weights; ``NAME.npz`` beside it
holds inputs, the outputs that PyTorch computes for them, and the gradients by the inputs of the
sum of all outputs times cos(0), cos(1), ...
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # its usual name

FOLDER = Path(__file__).parent
EXPORTERS = {"script": False, "dynamo": True}


class Residual(nn.Module):
    """The bottleneck of ResNet."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 1, bias=False),
            nn.BatchNorm2d(2 * width),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(channels, 2 * width, 1, stride, bias=False), nn.BatchNorm2d(2 * width)
        )

    def forward(self, x: Any) -> Any:
        return F.relu(self.branch(x) + self.shortcut(x))


def resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Residual(8, 4, 1),
        Residual(8, 6, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )


class UNet(nn.Module):
    """Down, up by transposed convolution and by resizing, with skips."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.LeakyReLU(0.1))
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.join = nn.Conv2d(16, 4, 3, padding=1)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        one = self.first(x)
        two = self.second(F.max_pool2d(one, 2))
        deep = self.up(self.deep(F.avg_pool2d(two, 2)))
        joined = self.join(torch.cat([two, deep], 1))
        up = F.interpolate(joined, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.last(torch.cat([one, up], 1)))


class Recurrent(nn.Module):
    """An LSTM in both directions, a GRU, and a classifier of the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4, batch_first=True)
        self.out = nn.Linear(4, 3)

    def forward(self, tokens: Any) -> Any:
        x, _ = self.lstm(self.embedding(tokens))
        x, _ = self.gru(x)
        return F.log_softmax(self.out(x[:, -1]), -1)


class Encoder(nn.Module):
    """Two layers of a transformer, written out."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "norm1": nn.LayerNorm(width),
                    "norm2": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(2)
        )

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        for layer in self.layers:
            qkv = layer["qkv"](layer["norm1"](x))
            q, k, v = qkv.reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v)
            x = x + layer["out"](mixed.transpose(1, 2).reshape(batch, length, width))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return x


class Decoder(nn.Module):
    """One step of a decoder: a token, and the keys and values of those before."""

    def __init__(self, width: int = 8, heads: int = 2, words: int = 13) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.embedding = nn.Embedding(words, width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.scale = nn.Parameter(torch.ones(width))
        self.gate, self.up = (nn.Linear(width, 16, bias=False) for _ in range(2))
        self.down = nn.Linear(16, width, bias=False)

    def normed(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale

    def forward(self, token: Any, keys: Any, values: Any) -> Any:
        x = self.embedding(token)
        batch = x.shape[0]
        q, k, v = (
            part.reshape(batch, 1, self.heads, self.size).transpose(1, 2)
            for part in self.qkv(self.normed(x)).chunk(3, -1)
        )
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        weights = torch.softmax(q @ keys.transpose(-1, -2) / math.sqrt(self.size), -1)
        x = x + (weights @ values).transpose(1, 2).reshape(batch, 1, -1)
        h = self.normed(x)
        x = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return x @ self.embedding.weight.T, keys, values


class Quantized(nn.Module):
    """A convolutional network whose numbers go through 8 bits (quantize, dequantize)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.out = nn.Linear(4 * 9, 3)

    def forward(self, x: Any) -> Any:
        def eight(x: Any, scale: float) -> Any:
            return torch.fake_quantize_per_tensor_affine(x, scale, 0, -128, 127)

        weight = eight(self.conv.weight, 0.01)
        x = eight(F.relu(F.conv2d(eight(x, 0.02), weight, self.conv.bias)), 0.03)
        return F.linear(F.max_pool2d(x, 2).flatten(1), eight(self.out.weight, 0.01), self.out.bias)


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU6(),
        nn.Conv2d(6, 6, 3, 2, 1, groups=6),
        nn.BatchNorm2d(6),
        nn.Hardswish(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 4),
    )


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(0, 11, shape)


# Model, and its inputs by name.
MODELS: dict[str, Any] = {
    "mlp": (mlp, {"x": (3, 6)}),
    "cnn": (cnn, {"x": (2, 3, 8, 8)}),
    "resnet": (resnet, {"x": (2, 3, 24, 24)}),
    "unet": (UNet, {"x": (1, 1, 16, 16)}),
    "recurrent": (Recurrent, {"tokens": tokens(2, 5)}),
    "encoder": (Encoder, {"x": (2, 5, 8)}),
    "decoder": (
        Decoder,
        {"token": tokens(2, 1), "keys": (2, 2, 3, 4), "values": (2, 2, 3, 4)},
    ),
    "quantized": (Quantized, {"x": (2, 1, 8, 8)}),
}


def settle(model: nn.Module) -> None:
    """Give normalizations statistics that are not 0 and 1."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)


def export(name: str) -> None:
    torch.manual_seed(7)
    build, shapes = MODELS[name]
    model = build().eval()
    settle(model)
    inputs = {
        what: torch.randn(shape) if isinstance(shape, tuple) else shape
        for what, shape in shapes.items()
    }
    smooth = {what: x for what, x in inputs.items() if x.is_floating_point()}
    for x in smooth.values():
        x.requires_grad_()
    found = model(*inputs.values())
    outputs = found if isinstance(found, tuple) else (found,)
    sum((y * torch.arange(y.numel()).reshape(y.shape).cos()).sum() for y in outputs).backward()
    arrays = {f"input {what}": x.detach().numpy() for what, x in inputs.items()}
    arrays |= {f"output {at}": y.detach().numpy() for at, y in enumerate(outputs)}
    arrays |= {f"gradient {what}": x.grad.numpy() for what, x in smooth.items()}
    inputs = {what: x.detach() for what, x in inputs.items()}
    np.savez_compressed(FOLDER / f"{name}.npz", **arrays)
    for exporter, dynamo in EXPORTERS.items():
        path = FOLDER / f"{name}_{exporter}.onnx"
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            dynamo=dynamo,
            **({"external_data": False} if dynamo else {}),
        )
        onnx.save(bare(onnx.load(path)), path)


def bare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model without the traces of the program that it came from."""
    del model.metadata_props[:]
    graph = model.graph
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        part.ClearField("doc_string")
        del part.metadata_props[:]
    del graph.value_info[:]
    for function in model.functions:
        del function.metadata_props[:]
        del function.value_info[:]
        for node in function.node:
            node.ClearField("doc_string")
            del node.metadata_props[:]
    return model


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for each in MODELS:
        export(each)
