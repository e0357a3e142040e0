"""The same network, data and schedule in PyTorch: the figures to reach. Needs torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "digits"))
import data

EPOCHS, BATCH, RATE = 20, 64, 3e-3


class Block(nn.Module):  # type: ignore[misc]  # torch may be missing
    """Two convolutions whose result is added to what they take."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        same = inputs == outputs and stride == 1
        self.shortcut = (
            nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        )

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.shortcut(x) + self.norms[1](self.second(y)))


def network() -> nn.Module:
    """Return the network of ``residual_network``."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *(Block(16, 16, 1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 32, 1)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def accuracy(seed: int) -> float:
    """Return the share of test images that the trained network reads."""
    split = data.split(data.load())
    torch.manual_seed(seed)
    model = network()
    x = torch.tensor(split.train_images).permute(0, 3, 1, 2)
    labels = torch.tensor(split.train_labels.astype(np.int64))
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=1e-4)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            padded = nn.functional.pad(x[rows], (1, 1, 1, 1))
            places = torch.randint(0, 3, (len(rows), 2)).tolist()
            moved = torch.stack(
                [
                    each[:, a : a + 8, b : b + 8]
                    for each, (a, b) in zip(padded, places, strict=True)
                ]
            )
            loss = nn.functional.cross_entropy(model(moved), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        read = model(torch.tensor(split.test_images).permute(0, 3, 1, 2)).argmax(1).numpy()
    return float(np.mean(read == split.test_labels))


if __name__ == "__main__":
    found = [accuracy(seed) for seed in range(3)]
    print("accuracy on test images:", *(f"{each:.4f}" for each in found))
