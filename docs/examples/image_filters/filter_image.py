"""Filter an image by convolution and by Fourier transform, and undo the blur of a shaking camera.

The command prints how near each backend comes to the image, and draws one picture. It exits with
1 when convolution and Fourier transform differ, or when a step of deblurring gains nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import filter_picture
import image_filters as filters
import numpy as np
import scene
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


NOISE = 0.01  # standard deviation of a pixel of the photo, where white is 1
CUTOFF = 0.06  # cycles per pixel


@dataclass(frozen=True)
class Run:
    """What one backend gave: images by name, misfits [steps], and how far two convolutions differ.

    ``decibels``: how near the photo and its restorations come to the image.
    """

    images: dict[str, NDArray[np.float32]]
    misfits: NDArray[np.float32]
    difference: float
    decibels: dict[str, float]


def psnr(image: NDArray[np.float32], truth: NDArray[np.float32]) -> float:
    """Return the peak signal-to-noise ratio in decibels, where white is 1."""
    error = np.clip(image, 0, 1).astype(np.float64) - truth
    return float(-10 * np.log10(np.mean(np.square(error))))


def run(size: int, steps: int, seed: int) -> Run:
    """Filter and restore the image on the active backend."""
    kernel = tp.asarray(filters.shake())
    margin = kernel.shape[0] // 2  # the camera moves, so it sees more than the photo shows
    whole = tp.asarray(scene.draw(size + 2 * margin))
    image = whole[margin:-margin, margin:-margin]

    direct, by_fft = (f(whole, kernel) for f in (filters.convolve, filters.convolve_by_fft))
    photo = by_fft + tp.random.normal(tp.random.key(seed), image.shape, scale=NOISE)
    restore = tp.compile(filters.deblur)
    restored, misfits = restore(photo, kernel, steps)
    found = {
        "image": image,
        "blurred": filters.blur(image, 2.5),
        "edges": filters.edges(image),
        "sharpened": filters.sharpen(image),
        "spectrum": filters.spectrum(image),
        "low": filters.low_pass(image, CUTOFF),
        "high": filters.high_pass(image, CUTOFF),
        "kernel": kernel,
        "photo": photo,
        "wiener": filters.wiener(photo, kernel),
        "restored": restored[margin:-margin, margin:-margin],
    }
    images = {name: tensor.numpy() for name, tensor in found.items()}
    return Run(
        images=images,
        misfits=misfits.numpy(),
        difference=float(tp.max(tp.abs(direct - by_fft))),
        decibels={
            name: psnr(images[name], images["image"]) for name in ("photo", "wiener", "restored")
        },
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend", style="bold")
    for heading in ("seconds", "FFT - direct", "photo", "Wiener", "gradients"):
        table.add_column(heading, justify="right")
    runs: list[Run] = []
    for name in options.backend or [tp.get_backend()]:
        with tp.use_backend(name), console.status(f"{name}: filtering and restoring"):
            start = time.perf_counter()
            runs.append(run(options.size, options.steps, options.seed))
            seconds = time.perf_counter() - start
        decibels = [f"{value:.1f} dB" for value in runs[-1].decibels.values()]
        table.add_row(name, f"{seconds:.1f}", f"{runs[-1].difference:.1e}", *decibels)
    console.print(table)
    console.print("dB: peak signal-to-noise ratio of the photo and of what was restored from it")
    filter_picture.draw(runs[0], CUTOFF, options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if all(map(_succeeded, runs)) else 1


def _succeeded(run: Run) -> bool:
    photo, wiener, restored = run.decibels.values()
    return run.difference < 1e-5 and photo < wiener < restored


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="may be repeated (default: the one that tensorplug chooses)",
    )
    parser.add_argument("--size", type=int, default=256, metavar="N", help="pixels of a side")
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="of the restoration")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the camera's noise")
    parser.add_argument("--output", type=Path, default=Path("out/filters.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
