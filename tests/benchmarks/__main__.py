"""Run the benchmarks: ``python tests/benchmarks [--only NAME ...] [--json FILE]``.

PyTorch and JAX take part where they are installed (dependency group "compare"). With
``--backends opencl --gpu``, PyTorch computes on the GPU, too. With ``--vectors 32``, all libraries
compute as on a processor without longer vectors: 32 bytes are AVX2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness import Measurement, Workload

# All libraries use all cores, so that libraries are compared, not settings.
THREADS = str(os.cpu_count() or 1)

_LONGEST = "X86_V4 AVX512_ICL AVX512_SPR"  # what NumPy calls vectors of 64 bytes
LIMITS = {
    bytes_: {
        "TENSORPLUG_CPU_VECTORS": bytes_,
        "NPY_DISABLE_CPU_FEATURES": numpy,
        "OPENBLAS_CORETYPE": openblas,
        "ATEN_CPU_CAPABILITY": aten,
        "ONEDNN_MAX_CPU_ISA": isa,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        # Its kernels of YNNPACK ask the processor alone; Eigen's have vectors of 32 bytes.
        "XLA_FLAGS": f"--xla_cpu_max_isa={xla} --xla_cpu_experimental_ynn_fusion_type=",
    }
    for bytes_, numpy, openblas, aten, isa, mkl, xla in (
        ("16", f"X86_V3 {_LONGEST}", "Nehalem", "default", "SSE41", "SSE4_2", "SSE4_2"),
        ("32", _LONGEST, "Haswell", "avx2", "AVX2", "AVX2", "AVX2"),
    )
}
"""The environment variables by which libraries use shorter vectors, by their bytes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        help="workloads in order; large ones run only by name",
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="seconds for the rounds of one workload"
    )
    parser.add_argument(
        "--large", type=int, default=26, metavar="LOG2", help="elements of large arrays: 2^LOG2"
    )
    parser.add_argument("--backends", nargs="*", default=[], help="only these: opencl:1, say")
    parser.add_argument(
        "--gpu", action="store_true", help="the backends are on a GPU; so is PyTorch, if possible"
    )
    parser.add_argument(
        "--json", type=Path, help="also write the figures to this file, after each workload"
    )
    parser.add_argument(
        "--targets",
        nargs="*",
        metavar="TEXT",
        help="the table of targets instead; only workloads whose names contain one of these",
    )
    parser.add_argument(
        "--modes",
        nargs="*",
        metavar="TEXT",
        help="compiled against eager instead; only workloads whose names contain one of these",
    )
    parser.add_argument(
        "--processor",
        action="store_true",
        help="processor time of all threads, for targets on devices that are processors",
    )
    parser.add_argument("--picture", type=Path, help="draw the targets into this file")
    parser.add_argument("--markdown", type=Path, help="write the table of targets to this file")
    parser.add_argument(
        "--kernels",
        nargs="*",
        help="compare kernels with NumPy instead; all of them if none is named",
    )
    parser.add_argument(
        "--decompositions",
        nargs="*",
        help="compare kernels of cpu with their decompositions; all of them if none is named",
    )
    parser.add_argument(
        "--vectors",
        choices=["16", "32"],
        help="the longest vectors, in bytes, of every library on an x86-64 processor",
    )
    options = parser.parse_args()
    if options.vectors:  # before any library is loaded, which is when they read this
        os.environ.update(LIMITS[options.vectors])
    sys.path.insert(0, str(Path(__file__).parent))
    table = "kernels" if options.kernels is not None else "decompositions"
    if (names := getattr(options, table)) is not None:
        figures = importlib.import_module(table).report(names, options.rounds)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n")
        return 0

    import peers
    from harness import measure
    from workloads import workloads

    import tensorplug as tp

    peers.choose(options.backends, gpu=options.gpu, logarithm=options.large)
    if peers.available("torch"):
        import torch

        torch.set_num_threads(int(THREADS))
    print(f"{platform.machine()}, {THREADS} cores, Python {platform.python_version()}")
    print(
        f"tensorplug {tp.__version__}: {', '.join(str(backend.name) for backend in tp.backends())}"
    )
    if peers.torch_told():
        print(peers.torch_told())
    if options.targets is not None:
        return _report_targets(options)
    if options.modes is not None:
        import modes

        figures = modes.report(options.modes, options.rounds, options.limit)
        if options.json:
            _write(options.json, figures)
        return 0
    rows: list[dict[str, object]] = []
    print(f"\n{'workload':40}{'contender':28}{'median us':>12}{'ratio':>8}  to")
    for name, make in _chosen(list(workloads()), options.only):
        try:
            parts = peers.parts(make())
            taken = [measure(part, rounds=options.rounds, limit=options.limit) for part in parts]
        except Exception as error:  # noqa: BLE001  # one workload more or less
            traceback.print_exc()
            rows.append({"workload": name, "error": f"{type(error).__name__}: {error}"})
        else:
            rows += _rows(taken)
        if options.json:
            _write(options.json, rows)
    return 1 if any("error" in row for row in rows) else 0


def _report_targets(options: argparse.Namespace) -> int:
    import ahead

    clock = time.process_time if options.processor else time.perf_counter
    rows = ahead.report(options.targets, options.rounds, options.limit, clock)
    if options.json:
        _write(options.json, rows)
    if options.markdown:
        options.markdown.write_text(ahead.write_table(rows))
    if options.picture:
        ahead.draw(rows, options.picture)
    return 0


def _chosen(
    listed: Sequence[tuple[str, Callable[[], Workload]]], only: Sequence[str]
) -> list[tuple[str, Callable[[], Workload]]]:
    """Return names and makers of workloads: the selected ones, in order, or all but large ones."""
    known = dict(listed)
    assert len(known) == len(listed), "two workloads have the same name"
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"no workload is called {', '.join(unknown)}")
    return [(name, known[name]) for name in only or known if only or not name.startswith("large")]


def _rows(taken: Sequence[Measurement]) -> list[dict[str, object]]:
    """Print and return the figures of a workload; its first part has the baseline."""
    rows: list[dict[str, object]] = []
    for figures in taken:
        workload, baseline = figures.workload, taken[0].workload.baseline
        base = taken[0].median(baseline)
        for contender in workload.contenders:
            seconds = figures.median(contender)
            apart = figures is not taken[0]  # rounds of its own, without the baseline
            ratio = seconds / base if apart else figures.ratio(contender)
            excess = seconds - base if apart else figures.excess(contender)
            print(
                f"{workload.name:40}{contender:28}{seconds * 1e6:12.2f}{ratio:8.2f}  {baseline}",
                flush=True,
            )
            rows.append(
                {
                    "workload": workload.name,
                    "contender": contender,
                    "microseconds": seconds * 1e6,
                    "ratio": ratio,
                    "excess_microseconds": excess * 1e6,
                    "baseline": baseline,
                    "calls_per_round": figures.calls,
                }
            )
    return rows


def _write(file: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write all rows so far to the file."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(rows, indent=2) + "\n")
    part.replace(file)


if __name__ == "__main__":
    raise SystemExit(main())
