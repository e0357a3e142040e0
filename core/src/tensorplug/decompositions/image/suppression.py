"""Non-maximum suppression. The number of boxes depends on the data, so the host selects them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import suppression
from tensorplug.ops.image import suppression as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.NON_MAX_SUPPRESSION_V3)(suppression.plain)
decompositions.on_host(ops.NON_MAX_SUPPRESSION_V4)(suppression.padded)
decompositions.on_host(ops.NON_MAX_SUPPRESSION_V5)(suppression.scored)
