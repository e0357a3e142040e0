"""Compare an op's own kernels with its decomposition, on three backends.

The op is the bilateral filter. The command prints times, and draws one picture. It exits with 1
if a kernel and the decomposition differ by more than rounding.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bilateral_kernels
import custom_op_picture
import numpy as np
from bilateral_filter import BILATERAL_FILTER, bilateral_filter, register_rules
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[1] / "image_filters"))
import scene  # the image is that of the example with the filters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


BACKENDS = ("cpu", "opencl", "minimal")
NOISE = 0.08  # standard deviation, where white is 1


@dataclass(frozen=True)
class Times:
    """Seconds of the first call, which may compile programs, and the shortest of others."""

    first: float
    later: float


@dataclass(frozen=True)
class Comparison:
    """What one backend gave. ``difference``: the largest between kernel and decomposition."""

    backend: str
    decomposed: Times
    native: Times
    difference: float


def noisy_image(size: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the brightness of the image, [size, size], without and with noise."""
    image = scene.draw(size).mean(axis=-1)
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=image.shape)
    return image, (image + noise).astype(np.float32)


def compare(backend: str, image: NDArray[np.float32], radius: int, repeat: int) -> Comparison:
    """Run the op on a backend without a kernel, and then with ours.

    Raises:
        RuntimeError: the op did not run as it should.

    """
    times, results = {}, {}
    with tp.use_backend(backend):
        x = tp.asarray(image)
        times["decomposed"], results["decomposed"] = _run(x, radius, repeat, "decomposed")
        with bilateral_kernels.register(BILATERAL_FILTER, backend):
            times["native"], results["native"] = _run(x, radius, repeat, "native")
    difference = float(np.max(np.abs(results["native"] - results["decomposed"])))
    return Comparison(backend, times["decomposed"], times["native"], difference)


def _run(x: tp.Tensor, radius: int, repeat: int, how: str) -> tuple[Times, NDArray[np.float32]]:
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        result = bilateral_filter(x, radius=radius)
        tp.synchronize()  # a device may still be at work when a call returns
        seconds.append(time.perf_counter() - start)
    explained = tp.explain(BILATERAL_FILTER, [x], {"radius": radius})
    if explained.how != how:
        raise RuntimeError(f"{explained} where it should be {how}")
    return Times(seconds[0], min(seconds[1:])), result.numpy()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend", style="bold")
    for heading in ("first call", "native", "later calls", "native", "difference"):
        table.add_column(heading, justify="right")
    image, noisy = noisy_image(options.size, options.seed)
    register_rules()
    found = []
    for name in options.backend or BACKENDS:
        with console.status(f"{name}: without and with a kernel"):
            found.append(compare(name, noisy, options.radius, options.repeat))
        pairs = (found[-1].decomposed, found[-1].native)
        first = [f"{times.first * 1e3:.0f} ms" for times in pairs]
        later = [f"{times.later * 1e3:.1f} ms" for times in pairs]
        table.add_row(name, *first, *later, f"{found[-1].difference:.1e}")
    console.print(table)
    console.print("Times of the decomposition, and of the kernel beside it.")
    with tp.use_backend(found[0].backend):
        custom_op_picture.draw(image, noisy, found, options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if all(one.difference < 1e-5 for one in found) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        choices=BACKENDS,
        help="may be repeated (default: all three)",
    )
    parser.add_argument("--size", type=int, default=512, metavar="N", help="pixels of a side")
    parser.add_argument("--radius", type=int, default=4, metavar="N", help="of the filter")
    parser.add_argument("--repeat", type=int, default=7, metavar="N", help="calls to time")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the noise")
    parser.add_argument("--output", type=Path, default=Path("out/custom_op.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
