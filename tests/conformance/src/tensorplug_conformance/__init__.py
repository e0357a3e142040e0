"""The conformance suite for tensorplug backends.

``CaseTable`` and what it holds are for extension packages: their hook
``tensorplug_conformance_cases`` returns tables, and their kernels are certified too.
"""

from __future__ import annotations

from typing import Final

from tensorplug_conformance.case import Array, Bounded, Case, Layout, Operand, Relation
from tensorplug_conformance.case_entry import CaseEntry, Published
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.floats import computing, epsilon, finfo
from tensorplug_conformance.tables import CaseTable

__all__ = [
    "SUITE_VERSION",
    "Array",
    "Bounded",
    "Case",
    "CaseEntry",
    "CaseTable",
    "Corpus",
    "Layout",
    "Operand",
    "Published",
    "Relation",
    "computing",
    "epsilon",
    "finfo",
]

SUITE_VERSION: Final = "0.6"
"""Names the cases, their inputs and the rules of judgement; any change of those changes it."""
