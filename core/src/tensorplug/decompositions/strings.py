"""Strings. Devices have no ops that split them, so the host does."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import strings
from tensorplug.ops import strings as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.STRING_N_GRAMS)(strings.n_grams)
decompositions.on_host(ops.STRING_SPLIT)(strings.split)
decompositions.on_host(ops.STRING_TO_HASH_BUCKET_FAST)(strings.hash_bucket)
decompositions.on_host(ops.STATIC_REGEX_REPLACE)(strings.replaced)
