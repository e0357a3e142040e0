"""The same network, data and schedule in PyTorch: the losses to reach. Needs torch."""

from __future__ import annotations

import math
from typing import Any

import records
import torch
from torch import nn

EPOCHS, BATCH, RATE = 16, 32, 3e-3
CONTEXT, WIDE, HEADS, LAYERS, DROPOUT = 64, 64, 4, 2, 0.1


class Attention(nn.Module):  # type: ignore[misc]  # torch may be missing
    """Causal attention of several heads between linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(WIDE, WIDE) for _ in range(4))

    def forward(self, x: Any) -> Any:
        q, k, v = (part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.parts[:3])
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.parts[3](seen.transpose(1, 2).flatten(2))


class Network(nn.Module):  # type: ignore[misc]
    """The network of ``transformer``."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(characters, WIDE)
        self.places = nn.Parameter(torch.empty(CONTEXT, WIDE))
        self.drop, self.parts = nn.Dropout(DROPOUT), nn.ModuleList()
        for _ in range(LAYERS):
            hidden = nn.Linear(WIDE, 4 * WIDE), nn.GELU(), nn.Linear(4 * WIDE, WIDE)
            for inner in ([Attention()], hidden):
                self.parts.append(nn.Sequential(nn.LayerNorm(WIDE), *inner, nn.Dropout(DROPOUT)))
        self.last = nn.Sequential(nn.LayerNorm(WIDE), nn.Linear(WIDE, characters))
        for name, each in self.named_parameters():  # drawn as tp.train.layers draws
            if name in {"places", "characters.weight"}:
                nn.init.uniform_(each, -0.05, 0.05)
            elif each.ndim == 2:
                nn.init.xavier_uniform_(each)
            elif name.endswith("bias"):
                nn.init.zeros_(each)

    def forward(self, text: Any) -> Any:
        x = self.drop(self.characters(text) + self.places)
        for part in self.parts:
            x = x + part(x)
        return self.last(x)


def losses(seed: int) -> tuple[float, float]:
    """Return the mean loss of the last epoch, and then that of held-out text."""
    corpus = records.load()
    (x, following), held_out = (
        tuple(torch.tensor(part).long() for part in records.pieces(text, CONTEXT))
        for text in (corpus.train, corpus.held_out)
    )
    torch.manual_seed(seed)
    network = Network(len(corpus.alphabet))
    optimizer = torch.optim.Adam(network.parameters(), RATE, eps=1e-7)
    steps = EPOCHS * math.ceil(len(x) / BATCH)
    begin = steps // 20

    def rate(step: int) -> float:
        falls = (1 + math.cos(math.pi * (step - begin) / steps)) / 2
        return step / begin if step < begin else falls + (1 - falls) / 30

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

    def loss(x: Any, following: Any) -> Any:
        return nn.functional.cross_entropy(network(x).flatten(0, 1), following.flatten())

    for _ in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            value = loss(x[rows], following[rows])
            value.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += value.item() * len(rows)
    network.eval()
    with torch.no_grad():
        return total / len(x), loss(*held_out).item()


if __name__ == "__main__":
    for seed in range(3):
        print(f"seed {seed}: loss of the last epoch %.3f, of held-out text %.3f" % losses(seed))
