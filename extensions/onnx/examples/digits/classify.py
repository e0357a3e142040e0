"""Read handwritten digits with an ONNX model, on any backend, and draw the five best answers.

python classify.py two.png seven.png --backend opencl --output digits.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import tensorplug as tp
import tensorplug_onnx

if TYPE_CHECKING:
    from collections.abc import Sequence

mpl.use("Agg")  # no window
from matplotlib import pyplot as plt  # after the choice of the window system

FOLDER = Path(__file__).parent
BEST = 5


def read(path: Path, height: int, width: int) -> np.ndarray[Any, Any]:
    """Return an image as float32[1, height, width]: 0 is paper, 1 is ink."""
    with Image.open(path) as image:
        small = image.convert("L").resize((width, height), Image.Resampling.BOX)
    return 1 - np.asarray(small, np.float32)[None] / 255


def best(scores: tp.Tensor) -> list[tuple[int, float]]:
    """Return the five most probable classes of float32[classes], with their probabilities."""
    probabilities, classes = tp.topk(tp.nn.softmax(scores), BEST)
    return list(zip(classes.tolist(), probabilities.tolist(), strict=True))


def picture(paths: Sequence[Path], answers: Sequence[list[tuple[int, float]]], to: Path) -> None:
    """Draw each image beside its answers."""
    figure, axes = plt.subplots(
        2, len(paths), figsize=(2.2 * len(paths), 4), squeeze=False, layout="constrained"
    )
    for path, answer, image, bars in zip(paths, answers, *axes, strict=True):
        with Image.open(path) as opened:
            image.imshow(opened.convert("L"), cmap="gray", vmin=0, vmax=255)
        image.set(xticks=[], yticks=[], title=path.name)
        names = [str(digit) for digit, _ in answer]
        bars.barh(names[::-1], [share for _, share in answer][::-1], color="tab:blue")
        bars.set(xlim=(0, 1), xlabel="probability")
    figure.savefig(to, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", type=Path, nargs="+", help="dark ink on light paper")
    parser.add_argument("--model", type=Path, default=FOLDER / "digits.onnx")
    parser.add_argument("--backend", help="default: the one that tensorplug chooses")
    parser.add_argument("--output", type=Path, default=Path("digits.png"))
    options = parser.parse_args(arguments)

    model = tensorplug_onnx.load(options.model).to(options.backend or tp.get_backend())
    [info] = model.inputs
    _, _, height, width = info.shape or ()
    images = np.stack([read(path, int(height or 0), int(width or 0)) for path in options.images])
    [scores] = model(images).values()

    answers = [best(row) for row in tp.unstack(scores)]
    table = Table("image", "digit", "probability", title=f"on {scores.device}")
    for path, answer in zip(options.images, answers, strict=True):
        digit, share = answer[0]
        table.add_row(path.name, str(digit), f"{share:.1%}")
    console = Console()
    console.print(table)
    picture(options.images, answers, options.output)
    console.print(f"Picture: {options.output}", highlight=False)


if __name__ == "__main__":
    main()
