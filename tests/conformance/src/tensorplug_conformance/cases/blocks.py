"""Cases for moving blocks between spatial axes and the batch or the channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import blocks as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants.patterns import Rows, points, shaped, specials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

NONE = ((0, 0), (0, 0))
TO_SPACE: Rows = (
    ("square", (4, 1, 1, 1), {"block_shape": (2, 2), "crops": NONE}),
    ("two images", (8, 1, 2, 3), {"block_shape": (2, 2), "crops": NONE}),
    ("oblong", (6, 2, 1), {"block_shape": (3,), "crops": ((0, 0),)}),
    ("one number", (2, 3), {"block_shape": 2, "crops": ((0, 0),)}),
    ("cropped", (4, 2, 2, 1), {"block_shape": (2, 2), "crops": ((1, 0), (1, 2))}),
    ("cropped away", (2, 1, 2), {"block_shape": (2,), "crops": ((1, 1),)}),
    ("blocks of 1", (2, 3, 2), {"block_shape": (1, 1), "crops": ((1, 0), (0, 1))}),
    ("no block", (2, 3), {"block_shape": (), "crops": ()}),
    ("empty batch", (0, 2), {"block_shape": (2,), "crops": ((0, 1),)}),
    ("rank 6", (8, 1, 2, 1, 2, 2), {"block_shape": (2, 1, 2), "crops": ((0, 1), (0, 0), (1, 0))}),
    ("large", (6, 41, 47, 7), {"block_shape": (2, 3), "crops": ((1, 0), (0, 2))}),
    ("transposed", (4, 2, 3), {"block_shape": (2, 2), "crops": NONE}),
    ("sliced", (4, 2, 3), {"block_shape": (2,), "crops": ((0, 1),)}),
)
TO_BATCH: Rows = (
    ("square", (1, 2, 2, 1), {"block_shape": (2, 2), "paddings": NONE}),
    ("two images", (2, 2, 4, 3), {"block_shape": (2, 2), "paddings": NONE}),
    ("oblong", (2, 6, 1), {"block_shape": (3,), "paddings": ((0, 0),)}),
    ("one number", (1, 6), {"block_shape": 2, "paddings": ((0, 0),)}),
    ("padded", (1, 3, 2, 2), {"block_shape": (2, 2), "paddings": ((1, 0), (1, 1))}),
    ("blocks of 1", (2, 3, 2), {"block_shape": (1, 1), "paddings": ((1, 0), (0, 1))}),
    ("padded by more than a block", (1, 2, 2), {"block_shape": (2,), "paddings": ((3, 1),)}),
    ("no block", (2, 3), {"block_shape": (), "paddings": ()}),
    ("empty", (1, 0, 2), {"block_shape": (2,), "paddings": ((1, 1),)}),
    (
        "rank 6",
        (1, 1, 2, 3, 2, 2),
        {"block_shape": (2, 1, 2), "paddings": ((0, 1), (0, 0), (1, 0))},
    ),
    ("large", (1, 81, 139, 7), {"block_shape": (2, 3), "paddings": ((1, 0), (0, 2))}),
    ("transposed", (2, 4, 2), {"block_shape": (2, 2), "paddings": NONE}),
    ("sliced", (2, 4, 3), {"block_shape": (2,), "paddings": ((1, 1),)}),
)
OUT_OF_DEPTH: Rows = (
    ("one pixel", (1, 1, 1, 4), {"block_size": 2}),
    ("several channels", (2, 2, 3, 8), {"block_size": 2}),
    ("3 by 3", (1, 2, 1, 18), {"block_size": 3}),
    ("channels first", (2, 8, 2, 3), {"block_size": 2, "data_format": "NCHW"}),
    ("3 by 3, channels first", (1, 18, 1, 2), {"block_size": 3, "data_format": "NCHW"}),
    ("blocks of 1", (1, 2, 2, 3), {"block_size": 1}),
    ("empty", (0, 2, 2, 4), {"block_size": 2}),
    ("large", (1, 41, 45, 36), {"block_size": 3}),
    ("transposed", (2, 2, 3, 4), {"block_size": 2}),
    ("sliced", (2, 2, 3, 4), {"block_size": 2}),
)
INTO_DEPTH: Rows = (
    ("one pixel", (1, 2, 2, 1), {"block_size": 2}),
    ("several channels", (2, 4, 2, 3), {"block_size": 2}),
    ("3 by 3", (1, 6, 3, 2), {"block_size": 3}),
    ("channels first", (2, 3, 4, 2), {"block_size": 2, "data_format": "NCHW"}),
    ("3 by 3, channels first", (1, 2, 3, 6), {"block_size": 3, "data_format": "NCHW"}),
    ("blocks of 1", (1, 2, 2, 3), {"block_size": 1}),
    ("empty", (0, 2, 2, 4), {"block_size": 2}),
    ("large", (1, 123, 135, 4), {"block_size": 3}),
    ("transposed", (2, 2, 4, 3), {"block_size": 2}),
    ("sliced", (2, 2, 4, 3), {"block_size": 2}),
)
REFUSED = {
    "BatchToSpaceND": (
        ("odd batch", (3, 2), {"block_shape": 2, "crops": ((0, 0),)}),
        ("too many crops", (2, 2), {"block_shape": 2, "crops": ((3, 2),)}),
        ("too many blocks", (4, 2), {"block_shape": (2, 2), "crops": NONE}),
        ("block of 0", (4, 2), {"block_shape": (0,), "crops": ((0, 0),)}),
        ("crops for other axes", (4, 2, 2), {"block_shape": 2, "crops": NONE}),
    ),
    "SpaceToBatchND": (
        ("odd axis", (1, 3), {"block_shape": 2, "paddings": ((0, 0),)}),
        ("negative padding", (1, 3), {"block_shape": 2, "paddings": ((-1, 0),)}),
    ),
    "DepthToSpace": (
        ("channels", (1, 2, 2, 6), {"block_size": 2}),
        ("rank", (2, 2, 4), {"block_size": 2}),
    ),
    "SpaceToDepth": (
        ("height", (1, 3, 2, 4), {"block_size": 2}),
        ("width", (1, 2, 3, 4), {"block_size": 2}),
    ),
}

for spec, rows, reference in (
    (specs.BATCH_TO_SPACE_ND, TO_SPACE, oracle.batch_to_space_nd),
    (specs.SPACE_TO_BATCH_ND, TO_BATCH, oracle.space_to_batch_nd),
    (specs.DEPTH_TO_SPACE, OUT_OF_DEPTH, oracle.depth_to_space),
    (specs.SPACE_TO_DEPTH, INTO_DEPTH, oracle.space_to_depth),
):

    @cases.of(spec, oracle=reference, signed_zero=True)
    def moved(
        corpus: Corpus, rows: Rows = rows, refused: Rows = REFUSED[spec.name]
    ) -> Iterator[Case]:
        """Square and oblong images, both layouts; sizes that do not fit."""
        yield from shaped(rows)(corpus)
        yield from specials(corpus, rows)
        for name, shape, attributes in refused:
            yield Case(name, (corpus.ordinary(shape),), attributes, expected=ShapeError)

    cases.gradients(spec, "x")(points(rows))
