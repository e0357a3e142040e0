"""The commands: ``info``, ``run``, ``bench``, ``profile``, ``compare`` and ``check``.

The exit status is 0 if all went well, 1 if the model, its inputs or its outputs are wrong or a
test failed, 2 if the command is wrong.
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
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import tensorplug as tp
from tensorplug.plugin import TensorplugError
from tensorplug_onnx.checking import KINDS, STATUSES, check, table_of, write
from tensorplug_onnx.comparing import REFERENCES, TOLERANCE, compare
from tensorplug_onnx.errors import InputError, OnnxError
from tensorplug_onnx.inspecting import (
    described,
    example_inputs,
    operators_of,
    profile,
    summary,
    trial,
    unknown_axes,
)
from tensorplug_onnx.model import Model, load
from tensorplug_onnx.values import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug_onnx.inspecting import NodeRun


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
        _tell(Console(stderr=True), f"error: {error}", style="red")
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
        ("compare", _compare, "compare the outputs with those of onnxruntime"),
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
            help="the size of a symbolic axis of inputs that are drawn, or of x[0]; else tried",
        )
        if name == "run":
            one.add_argument(
                "--output", type=Path, metavar="FILE.npz", help="where the outputs go"
            )
        if name in ("run", "bench"):
            one.add_argument("--compile", action="store_true", help="as one compiled program")
        if name == "compare":
            one.add_argument(
                "--reference", choices=REFERENCES, default=REFERENCES[0], help="to compare with"
            )
            one.add_argument(
                "--tolerance",
                type=float,
                default=TOLERANCE,
                metavar="X",
                help="of differences by the largest magnitude of an output (default %(default)g)",
            )
        if name == "bench":
            one.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N")
    told = "run ONNX's own tests on a backend"
    tests = commands.add_parser("check", help=told, description=told)
    tests.set_defaults(command=_check)
    tests.add_argument("--backend", metavar="NAME", help="the device to run on: cpu, opencl:1")
    tests.add_argument("--kind", action="append", choices=KINDS, help="of tests; all by default")
    tests.add_argument("--report", type=Path, metavar="DIR", help="write onnx.json and onnx.md")
    return parser


def _tell(console: Console, text: str, style: str = "") -> None:
    """Print text, which a model may bring: nothing in it acts on a terminal."""
    console.print(_printable(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _cell(text: str) -> str:
    """Return text of a model as a cell of a table."""
    return escape(_printable(text))


def _printable(text: str) -> str:
    """Return text with escapes for all but line ends that a terminal obeys."""
    return "".join(
        character
        if character == "\n" or character.isprintable()
        else character.encode("unicode_escape").decode()
        for character in text
    )


def _size(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N")
    return name, int(size)


def _inputs(options: argparse.Namespace, model: Model) -> Mapping[str, Any]:
    if options.inputs is None:
        sizes = dict(options.size)
        if not unknown_axes(model, sizes):
            return example_inputs(model, sizes)
        tried = trial(model, sizes)
        if tried.error is not None:
            raise InputError(str(tried)) from tried.error
        if str(tried):
            _tell(Console(stderr=True), str(tried))
        return tried.inputs
    try:
        with options.inputs.open("rb") as file, np.load(file) as stored:  # nothing is unpickled
            return dict(stored)
    except OSError:
        raise
    except Exception as error:  # NumPy and zipfile document none of what they raise
        raise InputError(
            f"{options.inputs} is no archive of arrays that can be read: "
            f"{type(error).__name__}: {error}"
        ) from error


def _info(options: argparse.Namespace, console: Console) -> None:
    model = load(options.model)
    _tell(console, summary(model))
    if options.inputs is None:
        tried = trial(model, dict(options.size))
        runs: Sequence[NodeRun] = tried.runs
        remark = str(tried)
    else:
        runs, remark = profile(model, _inputs(options, model)), ""
    table = Table("op type", "nodes", "runs", title=f"on {tp.get_backend()}")
    for row in sorted(operators_of(runs, model.graph.nodes), key=lambda row: -row.nodes):
        table.add_row(_cell(row.op_type), str(row.nodes), ", ".join(row.how))
    console.print(table)
    if remark:
        _tell(console, remark)


def _run(options: argparse.Namespace, console: Console) -> None:
    model = load(options.model)
    if options.compile:
        model = model.compile()
    outputs = model(_inputs(options, model))
    for info in model.outputs:
        value = outputs[info.name]
        _tell(console, _shown(info.name, value))
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
    _tell(console, ", ".join(map(described, model.inputs)))


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
        table.add_row(_cell(row.op_type), str(row.nodes), ", ".join(row.how), milliseconds, share)
    console.print(table)


def _compare(options: argparse.Namespace, console: Console) -> int:
    inputs = _inputs(options, load(options.model))
    rows = compare(options.model, inputs, options.reference)
    agree = [row.error <= options.tolerance for row in rows]
    table = Table(
        "output", "runs", "error", "", title=f"{tp.get_backend()} beside {options.reference}"
    )
    for row, right in zip(rows, agree, strict=True):
        table.add_row(row.name, row.how, f"{row.error:.1e}", "agrees" if right else "differs")
    console.print(table)
    return int(not all(agree))


def _check(options: argparse.Namespace, console: Console) -> int:
    device = tp.get_backend()
    progress = Console(stderr=True)

    def told(tests: Iterable[Any], total: int) -> Iterable[Any]:
        return track(tests, "tests", total=total, console=progress, transient=True)

    results = list(check(device, options.kind or KINDS, told))
    for result in results:
        if result.status != "pass":
            text = f"{STATUSES[result.status]} {result.name}: {result.why}"
            _tell(console, text)
    table = Table("tests", *STATUSES.values(), title=f"ONNX's tests on {device}")
    for row in table_of(results):
        table.add_row(*row)
    console.print(table)
    if options.report is not None:
        for path in write(results, device, options.report):
            _tell(console, f"report: {path}")
    return int(any(result.status in ("fail", "unsupported") for result in results))


if __name__ == "__main__":
    sys.exit(main())
