"""The steps on a device, the most important first, and their shares of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


LEAST: Final = 5.0  # seconds; no step begins with less

# From the general to the specific: the device at large, models, single kernels.
WORKLOADS: Final = (
    *("large_add", "large_exp", "large_sum", "large_matmul_float32", "large_softmax"),
    *("large_transpose", "large_conv", "transformer", "cnn", "mlp", "opencl_launch", "add16"),
    *("conv_large", "conv_large_forward", "matmul512", "large_sum_of_columns"),
    *("large_cumsum_of_rows", "large_sort", "large_matmul_float16", "large_matmul_float64"),
    *("chain_of_ten", "depthwise", "conv3d_forward", "embedding", "embedding_grad_text"),
    *("max_pool_2_both_nhwc", "batch_norm", "resize_bilinear512", "topk", "searchsorted"),
    *("uniform", "normal", "pad", "concat", "sum_rows", "sum_of_columns", "matrix_vector8192"),
    *("add64MB", "exp64MB", "matmul64", "mask", "opencl_start"),
)


_DRIVEN: Final = {
    "opencl": ("pyopencl", "tensorplug_opencl"),
    "webgpu": ("wgpu", "tensorplug_webgpu"),
}


@dataclass(frozen=True)
class Step:
    """One step.

    ``program`` is run by Python, with ``arguments``; words in braces are filled in. ``needs``: the
    modules it imports. ``share``: of the time, in parts of the sum of all. ``backend``: whose GPU
    it needs.
    """

    name: str
    title: str
    share: float
    program: str
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    backend: str = "opencl"

    @property
    def packages(self) -> tuple[str, ...]:
        """The modules that the step imports."""
        return ("numpy", "tensorplug", *_DRIVEN[self.backend], *self.needs)


_SUITE: Final = ("tensorplug_conformance", "hypothesis")
_CONFORMANCE: Final = ("--jobs", "{jobs}", "--item-limit", "{item_limit}", "--folder", "{folder}")

STEPS: Final = (
    Step("facts", "Device", 10, "facts.py", ("--device", "{asked}", "--hardware", "{hardware}")),
    Step(
        "level2",
        "Conformance, levels 0 to 2",
        20,
        "conformance.py",
        ("--device", "{device}", "--levels", "0", "1", "2", *_CONFORMANCE),
        _SUITE,
    ),
    Step(
        "tests",
        "Tests of the backend",
        20,
        "correctness.py",
        ("--device", "{device}", "--jobs", "{jobs}"),
        ("pytest", "hypothesis"),
    ),
    Step(
        "webgpu",
        "WebGPU: conformance, levels 0 to 2",
        15,
        "webgpu.py",
        ("--levels", "0", "1", "2", *_CONFORMANCE[:-1], "{folder}-webgpu"),
        _SUITE,
        backend="webgpu",
    ),
    Step("rates", "Rates", 15, "rates.py", ("--device", "{device}")),
    Step(
        "benchmarks",
        "Benchmarks",
        20,
        "../benchmarks",
        (
            *("--backends", "{device}", "--large", "{large}", "--rounds", "9", "--limit", "3"),
            *("--only", *WORKLOADS),
        ),
    ),
    Step(
        "level3",
        "Conformance, level 3",
        15,
        "conformance.py",
        ("--device", "{device}", "--levels", "3", *_CONFORMANCE),
        _SUITE,
    ),
    Step(
        "level4",
        "Conformance, level 4",
        5,
        "conformance.py",
        ("--device", "{device}", "--levels", "4", *_CONFORMANCE),
        _SUITE,
    ),
)


def allowance(step: Step, left: Sequence[Step], seconds: float) -> float:
    """Return how long ``step`` may take of the seconds that remain for the steps ``left``.

    Time that earlier steps did not use goes to the remaining ones.
    """
    return seconds * step.share / sum(other.share for other in left)
