"""Strings have no gradients; neither do numbers made from them."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import strings as ops

rules: RuleTable = RuleTable()
rules.stop(ops.STRING_N_GRAMS, because="texts, and whole numbers")
rules.stop(ops.STRING_SPLIT, because="texts")
rules.stop(ops.STRING_TO_HASH_BUCKET_FAST, because="texts")
rules.stop(ops.STATIC_REGEX_REPLACE, because="texts")
