"""The commands: ``info``, ``run``, ``bench``, ``profile`` and ``check``.

The exit status is 0 if all went well, 1 if the model or its inputs are wrong or a test failed, 2
if the command is wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tensorplug as tp
from tensorplug.plugin import TensorplugError
from tensorplug_onnx.checking import KINDS, check, table_of, write
from tensorplug_onnx.errors import OnnxError
from tensorplug_onnx.inspecting import (
    described,
    example_inputs,
    operators_of,
    profile,
    summary,
)
from tensorplug_onnx.model import Model, load
from tensorplug_onnx.values import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["main"]

_ROUNDS: Final = 20
_WIDTH: Final = 60  # characters of the values that are shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    Args:
        arguments: of the command line; None for this process's.

    """
    options = _parser().parse_args(arguments)
    try:
        with nullcontext() if options.backend is None else tp.use_backend(options.backend):
            status: int = options.command(options, Console()) or 0
    except (OnnxError, TensorplugError, OSError) as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorplug_onnx", description="ONNX models on any tensorplug backend"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, told in (
        ("info", _info, "inputs, outputs, parameters, op types and how they run"),
        ("run", _run, "run once and show or save the outputs"),
        ("bench", _bench, "time calls, as it is and compiled"),
        ("profile", _profile, "time each op type"),
    ):
        one = commands.add_parser(name, help=told, description=told)
        one.set_defaults(command=command)
        one.add_argument("model", type=Path, help="an .onnx file")
        one.add_argument("--backend", metavar="NAME", help="the device to run on: cpu, opencl:1")
        one.add_argument(
            "--inputs", type=Path, metavar="FILE.npz", help="inputs by name; else drawn at random"
        )
        one.add_argument(
            "--size",
            action="append",
            default=[],
            type=_size,
            metavar="NAME=N",
            help="the size of a symbolic axis of inputs that are drawn (1)",
        )
        if name == "run":
            one.add_argument(
                "--output", type=Path, metavar="FILE.npz", help="where the outputs go"
            )
        if name in ("run", "bench"):
            one.add_argument("--compile", action="store_true", help="as one compiled program")
        if name == "bench":
            one.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N")
    told = "run ONNX's own tests on a backend"
    tests = commands.add_parser("check", help=told, description=told)
    tests.set_defaults(command=_check)
    tests.add_argument("--backend", metavar="NAME", help="the device to run on: cpu, opencl:1")
    tests.add_argument("--kind", action="append", choices=KINDS, help="of tests; all by default")
    tests.add_argument("--report", type=Path, metavar="DIR", help="write onnx.json and onnx.md")
    return parser


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N")
    return name, int(size)


def _inputs(options: argparse.Namespace, model: Model) -> Mapping[str, Any]:
    if options.inputs is None:
        return example_inputs(model, dict(options.size))
    with np.load(options.inputs) as stored:
        return dict(stored)


def _info(options: argparse.Namespace, console: Console) -> None:
    model = load(options.model)
    console.print(summary(model), markup=False, highlight=False, soft_wrap=True)
    table = Table("op type", "nodes", "runs", title=f"on {tp.get_backend()}")
    for row in sorted(
        operators_of(profile(model, _inputs(options, model))), key=lambda row: -row.nodes
    ):
        table.add_row(row.op_type, str(row.nodes), ", ".join(row.how))
    console.print(table)


def _run(options: argparse.Namespace, console: Console) -> None:
    model = load(options.model)
    if options.compile:
        model = model.compile()
    outputs = model(_inputs(options, model))
    for info in model.outputs:
        value = outputs[info.name]
        console.print(f"{_shown(info.name, value)}", markup=False, highlight=False, soft_wrap=True)
    if options.output is not None:
        arrays: dict[str, Any] = {name: value.numpy() for name, value in outputs.items()}
        np.savez(options.output, **arrays)


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, tp.Tensor):
        return f"{name}: {value!r}"[:_WIDTH]
    text = np.array2string(value.numpy(), threshold=6, precision=4).replace("\n", " ")
    return f"{name} {dtype_of(value)}{list(value.shape)}: {text[:_WIDTH]}"


def _bench(options: argparse.Namespace, console: Console) -> None:
    model = load(options.model)
    inputs = {name: tp.asarray(value) for name, value in _inputs(options, model).items()}
    contenders = {"node by node": model}
    if options.compile:
        contenders["compiled"] = model.compile()
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender(inputs)  # compiles
    rounds = range(options.rounds)
    progress = Console(stderr=True)
    for _ in track(rounds, "rounds", console=progress, transient=True):
        for name, contender in contenders.items():
            tp.synchronize()
            began = time.perf_counter()
            contender(inputs)
            tp.synchronize()
            taken[name].append(time.perf_counter() - began)
    table = Table("", "median", "least", title=f"milliseconds a call on {tp.get_backend()}")
    for name, seconds in taken.items():
        table.add_row(name, f"{1e3 * statistics.median(seconds):.3f}", f"{1e3 * min(seconds):.3f}")
    console.print(table)
    console.print(
        ", ".join(map(described, model.inputs)), markup=False, highlight=False, soft_wrap=True
    )


def _profile(options: argparse.Namespace, console: Console) -> None:
    model = load(options.model)
    inputs = _inputs(options, model)
    profile(model, inputs)  # the first run compiles kernels
    rows = operators_of(profile(model, inputs))
    whole = sum(row.seconds for row in rows)
    table = Table("op type", "nodes", "runs", "ms", "share", title=f"on {tp.get_backend()}")
    for row in rows:
        share = f"{row.seconds / whole:.0%}" if whole else ""
        milliseconds = f"{1e3 * row.seconds:.3f}"
        table.add_row(row.op_type, str(row.nodes), ", ".join(row.how), milliseconds, share)
    console.print(table)


def _check(options: argparse.Namespace, console: Console) -> int:
    device = tp.get_backend()
    progress = Console(stderr=True)

    def told(tests: Iterable[Any], total: int) -> Iterable[Any]:
        return track(tests, "tests", total=total, console=progress, transient=True)

    results = list(check(device, options.kind or KINDS, told))
    for result in results:
        if result.status != "passed":
            text = f"{result.status} {result.name}: {result.why}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    table = Table("tests", "passed", "failed", "no rule", title=f"ONNX's tests on {device}")
    for row in table_of(results):
        table.add_row(*map(str, row))
    console.print(table)
    if options.report is not None:
        for path in write(results, device, options.report):
            console.print(f"report: {path}", markup=False, highlight=False, soft_wrap=True)
    return int(any(result.status != "passed" for result in results))


if __name__ == "__main__":
    sys.exit(main())
