"""Cases asked again by a process that knows nothing of the suite.

A backend may find out that it is being examined: from the modules that are loaded, the stack, the
command, the folder, the environment or the parent process. So some cases, drawn by a seed that is
drawn for each run, are asked again by a program like any user's. It imports NumPy and tensorplug,
and its parent is a shell that nobody waits for. What it computed is judged here, by the oracle.
"""

from __future__ import annotations

import os
import pickle
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat
from tensorplug_conformance.denominator import Row
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.trying.faults import WrongResultError
from tensorplug_conformance.trying.needs import lacks_dtype
from tensorplug_conformance.trying.references import worked_out
from tensorplug_conformance.trying.soak import own_cases
from tensorplug_conformance.trying.trial import Trial
from tensorplug_conformance.verdicts import RowVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.session import Session


Asked = tuple["CaseEntry", Row, "Case"]

_SMALL: Final = 4096  # elements of all inputs
_DTYPES: Final = {2: 26, 3: 3}  # at most, for each kernel, by level
_CASES: Final = 4  # for each of them
_POLL: Final = 0.02  # seconds
_QUOTED: Final = 200  # characters of what it printed
_KNOWING: Final = ("conformance", "pytest", "coverage")  # words that give the suite away
# Its names are drawn for each process: a backend could know them.
_SHELL: Final = '("$0" "$1.py" < "$2" > printed.txt 2> errors.txt; echo $? > status.txt) &'
_HUNG: Final = "it hung: it did not end within {:g} s"
_BEGINNING: Final = 0.5  # of the time, in which calls begin
PROGRAM: Final = """\
import pickle
import time

import numpy as np

import tensorplug as tp

end = time.monotonic() + SECONDS
with open(0, "rb") as file:
    backend, calls, kernels = pickle.load(file)
results = []


def compute(kernel, inputs, attributes):
    try:
        found = tp.run_kernel(kernel, inputs, attributes)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return [np.array(x.numpy()) for x in (found if isinstance(found, list) else [found])]


with tp.use_backend(backend):
    for call in calls:
        if time.monotonic() > end:
            break
        results.append(compute(*call))
    native = [name for name in kernels if tp.explain(name).how == "native"]
with open(NAME, "wb") as file:
    pickle.dump((results, native), file)
"""


class PlainProcessError(Exception):
    """The process did not get to its end, or printed; the message says how."""


def drawn(session: Session, known: Mapping[str, CaseEntry], level: int, draw: int) -> list[Asked]:
    """Return cases of the kernels of a level, drawn by ``draw`` with their numbers and order.

    The first dtype of each kernel is always among them.
    """
    chance = random.Random(f"{draw} {level}")
    seed = chance.randrange(1 << 31)
    sample: list[Asked] = []
    for name, entry in sorted(known.items()):
        if (name in PRIMITIVES) != (level == 2):
            continue
        declared = [dtype for dtype in entry.dtypes if dtype in session.device.backend.dtypes]
        lead = sorted(declared, key=lambda dtype: dtype is not dt.float32)[:1]
        others = [dtype for dtype in declared if dtype not in lead]
        more = chance.sample(others, min(len(others), _DTYPES[level] - 1))
        for dtype in (*lead, *more):
            row = Row(name, dtype.name, "native")
            # Numbers of its own: those of the rows can be known by heart.
            fitting = [case for case in own_cases(entry, dtype, seed) if _small(case)]
            chance.shuffle(fitting)
            runs = (case for case in fitting if _runs(session, entry, case))
            sample += [(entry, row, case) for case, _ in zip(runs, range(_CASES), strict=False)]
    chance.shuffle(sample)
    return sample


def _small(case: Case) -> bool:
    arrays = flat(case.inputs)
    return not case.refused and sum(x.size for x in arrays) <= _SMALL


def _runs(session: Session, entry: CaseEntry, case: Case) -> bool:
    """Return whether the backend has the dtypes of a case, and some way to run it."""
    if lacks_dtype(session, entry.spec, case):
        return False
    try:
        how, _ = session.how(entry.spec, case)
    except TensorplugError:  # a row of its own fails then
        return False
    ways = ("native",) if session.falls_back else ("native", "decomposed", "widened", "host")
    return how in ways


def ask(
    backend: str, asked: Sequence[Asked], seconds: float, kernels: Sequence[str] = ()
) -> tuple[list[Any], list[str]]:
    """Return what a plain process computes: for each case a list of arrays, or an error's text.

    A device's compiler may need too long for all of them: then the last cases have no answer.
    Also return which of ``kernels`` the backend registers there.

    Raises:
        PlainProcessError: it does not get to its end in time, or prints.

    """
    calls = [(row.kernel, list(case.inputs), dict(case.attributes)) for _, row, case in asked]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, questions, results = (secrets.token_hex(4) for _ in range(3))
        text = PROGRAM.replace("NAME", repr(results)).replace(
            "SECONDS", repr(_BEGINNING * seconds)
        )
        (folder / f"x{program}.py").write_text(text, "utf-8")
        (folder / questions).write_bytes(pickle.dumps((backend, calls, kernels)))
        _run(folder, f"x{program}", questions, seconds)
        printed = (folder / "printed.txt").read_bytes().decode("utf-8", errors="replace")
        if printed:
            raise PlainProcessError(f"it printed {printed[:_QUOTED]!r}")
        answers: tuple[list[Any], list[str]] = pickle.loads(  # its own
            (folder / results).read_bytes()
        )
        return answers


def _run(folder: Path, program: str, questions: str, seconds: float) -> None:
    """Run the program of a folder, where there are processes without parents as such a one."""
    run = _run_apart if os.name == "posix" else _run_as_child
    code = run(folder, program, questions, seconds)
    if code != 0:
        errors = (folder / "errors.txt").read_text("utf-8", errors="replace").strip()
        last = "\n".join(errors.splitlines()[-8:])
        raise PlainProcessError(f"it ended with status {code}:\n{last}")


def _run_apart(folder: Path, program: str, questions: str, seconds: float) -> int:
    """Run the program under a shell that has no parent here; return its status."""
    shell = shutil.which("sh")
    if shell is None:
        raise PlainProcessError("this platform has no sh, under which the program could run")
    process = subprocess.Popen(
        [shell, "-c", _SHELL, sys.executable, program, questions],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.wait()
    status = folder / "status.txt"
    end = time.monotonic() + seconds
    while not (status.exists() and (code := status.read_text("ascii").strip())):
        if time.monotonic() > end:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise PlainProcessError(_HUNG.format(seconds))
        time.sleep(_POLL)
    return int(code)


def _run_as_child(folder: Path, program: str, questions: str, seconds: float) -> int:
    with (
        (folder / questions).open("rb") as calls,
        (folder / "printed.txt").open("wb") as printed,
        (folder / "errors.txt").open("wb") as errors,
    ):
        try:
            return subprocess.run(
                [sys.executable, f"{program}.py"],
                cwd=folder,
                env=environment(folder),
                stdin=calls,
                stdout=printed,
                stderr=errors,
                timeout=seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise PlainProcessError(_HUNG.format(seconds)) from None


def environment(folder: Path) -> dict[str, str]:
    """Return the environment without what names the suite, and without fallback.

    Search paths stay: without them the plugin may not be found.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.endswith("PATH")
        or (
            not any(word in f"{name}={value}".lower() for word in (*_KNOWING, "oldpwd"))
            and name != "_"
        )
    }
    return {**kept, "PWD": str(folder), "TENSORPLUG_FALLBACK": "error"}


def misjudged(session: Session, asked: Sequence[Asked], answers: Sequence[Any]) -> Iterator[str]:
    """Yield what is wrong with the answers: kernel, dtype, case, and what the oracle says."""
    for (entry, row, case), answer in zip(asked, answers, strict=False):
        name = f"{row.kernel} {row.dtype}, case {case.id!r}"
        if isinstance(answer, str):
            yield f"{name}: {answer}"
            continue
        verdict = RowVerdict(row, "fail", 1)
        trial = Trial(session, entry, row, case, partial(worked_out, entry), verdict)
        try:
            trial.judge(answer)
        except WrongResultError as fault:
            yield f"{name}: {fault}"
