"""Strings have no gradients; neither do numbers made from them."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import strings as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.STRING_N_GRAMS, because="texts, and whole numbers")
gradients.stop(ops.STRING_SPLIT, because="texts")
gradients.stop(ops.STRING_TO_HASH_BUCKET_FAST, because="texts")
gradients.stop(ops.STATIC_REGEX_REPLACE, because="texts")
