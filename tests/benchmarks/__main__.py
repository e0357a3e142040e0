"""Run the benchmarks: ``python tests/benchmarks [--only NAME ...] [--json FILE]``.

PyTorch and JAX take part where they are installed (dependency group "compare").
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

# The whole machine is used by everybody, so that libraries are compared and not settings.
THREADS = str(os.cpu_count() or 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="names of workloads")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument(
        "--kernels", nargs="*", help="instead: kernels beside NumPy; all of them if none is named"
    )
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    if options.kernels is not None:
        from kernels import report

        figures = report(options.kernels, options.rounds)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n")
        return 0

    from harness import measure
    from workloads import available, workloads

    import tensorplug as tp

    if available("torch"):
        import torch

        torch.set_num_threads(int(THREADS))
    print(f"{platform.machine()}, {THREADS} cores, Python {platform.python_version()}")
    print(f"tensorplug {tp.__version__}: {', '.join(str(each.name) for each in tp.backends())}\n")
    rows = []
    print(f"{'workload':28}{'contender':20}{'median us':>12}{'ratio':>8}  to")
    for name, make in workloads():
        if options.only and name not in options.only:
            continue
        workload = make()
        figures = measure(workload, rounds=options.rounds)
        for contender in workload.contenders:
            microseconds = figures.median(contender) * 1e6
            ratio = figures.ratio(contender)
            print(
                f"{workload.name:28}{contender:20}{microseconds:12.2f}{ratio:8.2f}  "
                f"{workload.baseline}"
            )
            rows.append(
                {
                    "workload": workload.name,
                    "contender": contender,
                    "microseconds": microseconds,
                    "ratio": ratio,
                    "excess_microseconds": figures.excess(contender) * 1e6,
                    "baseline": workload.baseline,
                    "calls_per_round": figures.calls,
                }
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
