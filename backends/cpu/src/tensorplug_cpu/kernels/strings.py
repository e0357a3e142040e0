"""Texts, as on the host of any device; a pattern is compiled once per plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import host_functions
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.STRING_N_GRAMS, because="faster")
def string_n_grams(
    data: TensorType, data_splits: TensorType, *, attributes: dict[str, Any]
) -> Call:
    return without_warnings(partial(host_functions.strings.n_grams, **attributes))


@kernels.prepare(specs.STRING_SPLIT, because="faster")
def string_split(input: TensorType, delimiter: TensorType, *, skip_empty: bool) -> Call:
    return without_warnings(partial(host_functions.strings.split, skip_empty=skip_empty))


@kernels.prepare(specs.STRING_TO_HASH_BUCKET_FAST, because="faster")
def string_to_hash_bucket_fast(
    input: TensorType,
    *,
    num_buckets: int,
    out: TensorType,
) -> Call:
    return kernel(partial(host_functions.strings.hash_bucket, num_buckets=num_buckets), out)


@kernels.prepare(specs.STATIC_REGEX_REPLACE, because="faster")
def static_regex_replace(
    x: TensorType, *, pattern: str, rewrite: str, replace_global: bool, out: TensorType
) -> Call:
    replace = host_functions.strings.replacement(pattern, rewrite, replace_global=replace_global)

    def run(x: Array) -> Array:
        return np.asarray(replace(x))

    return without_warnings(run)
