"""The handwritten digits: 1797 images of 8x8 pixels, and the numbers every run shares.

README.md beside this file says where the images come from and under which licence.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


CLASSES = 10
EVERY = 5  # one image in so many of each class is kept for the test
BRIGHTEST = 16  # pixel values are 0 .. 16

FILE = Path(__file__).with_name("digits.npz")
IMAGES = (np.dtype(np.uint8), (1797, 8, 8))
LABELS = (np.dtype(np.uint8), (1797,))
# Of the bytes of the images, then those of the labels, both in C order.
SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


@dataclass(frozen=True)
class Digits:
    """The data set as it lies in the file.

    ``images``: uint8[1797, 8, 8], 0 (paper) to 16 (ink). ``labels``: uint8[1797], 0 to 9.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


@dataclass(frozen=True)
class Split:
    """Images to train on and images to test with.

    Images are float32[n, 8, 8, 1] from 0 to 1, labels int32[n].
    """

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int32]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int32]


def load(file: Path = FILE) -> Digits:
    """Read the data set and check that it is the one we mean.

    Raises:
        ValueError: an array is missing, or its dtype, shape or contents are others.

    """
    with np.load(file, allow_pickle=False) as archive:
        missing = {"images", "labels"} - set(archive.files)
        if missing:
            raise ValueError(f"{file.name} has no array named {', '.join(sorted(missing))}")
        images, labels = archive["images"], archive["labels"]
    for name, array, (dtype, shape) in (("images", images, IMAGES), ("labels", labels, LABELS)):
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(
                f"{file.name}: {name} must be {dtype}{list(shape)}, "
                f"got {array.dtype}{list(array.shape)}"
            )
    found = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{file.name}: the contents' SHA-256 must be {SHA256}, got {found}")
    return Digits(images, labels)


def split(digits: Digits) -> Split:
    """Keep every fifth image of each class for the test; the same ones whatever the seed."""
    kept = [np.flatnonzero(digits.labels == index)[EVERY - 1 :: EVERY] for index in range(CLASSES)]
    test = np.sort(np.concatenate(kept))
    train = np.setdiff1d(np.arange(len(digits.labels)), test)
    images = (digits.images[..., np.newaxis] / np.float32(BRIGHTEST)).astype(np.float32)
    labels = digits.labels.astype(np.int32)
    return Split(images[train], labels[train], images[test], labels[test])
