"""Strings: parts of them, n-grams, patterns, buckets."""

from __future__ import annotations

from tensorplug.ops.strings import (
    static_regex_replace,
    string_n_grams,
    string_split,
    string_to_hash_bucket_fast,
)

__all__ = ["static_regex_replace", "string_n_grams", "string_split", "string_to_hash_bucket_fast"]
