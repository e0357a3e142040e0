"""A session whose kernel is a callable in another process; layouts are made here, by NumPy."""

from __future__ import annotations

import os
import pickle
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorplugError, as_tensor, child_processes
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.case import flat, mapped, types_of
from tensorplug_conformance.differential.judging import plain_attributes
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying import program
from tensorplug_conformance.trying.comparer import array_of
from tensorplug_conformance.trying.faults import DeclinedError, WrongResultError
from tensorplug_conformance.trying.plain import environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.plugin import KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case

_LAYS_OUT: Final = "cpu"
_START: Final = 120.0  # seconds: some libraries take long to import
# As in ``trying.plain``: the parent is a shell that has ended.
_SHELL: Final = 'exec 3<&0; ("$0" "$1" <&3 3<&- 2> errors.txt; echo $? > status.txt) &'


class NotJudgedError(Exception):
    """The callable cannot be called at all; the message says why."""


class LostError(Exception):
    """Its process died, hung, or answered what it was not asked."""


class RaisedError(TensorplugError):
    """The callable raised an exception."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is judged, and how.

    ``target``: "module:function" or "/file.py:function". ``library``: whose arrays it takes, with
    ``device``; NumPy's if empty. ``renamed``: its names for attributes. ``poison``: memory that
    the allocator gives is filled before each call. ``limit``: seconds for a call.
    """

    target: str
    library: str = ""
    device: str = "cpu"
    renamed: Mapping[str, str] = field(default_factory=dict)
    poison: bool = False
    limit: float = 60.0


class _Caller:
    """The process, from outside."""

    def __init__(self, judged: Judged) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = self._path = Path(self._folder.name)
        name = f"x{secrets.token_hex(4)}.py"
        (folder / name).write_text(Path(program.__file__).read_text("utf-8"), "utf-8")
        shell = shutil.which("sh") if os.name == "posix" else None
        command = [shell, "-c", _SHELL] if shell else []
        self._process = subprocess.Popen(
            [*command, sys.executable, name],
            cwd=folder,
            env={k: v for k, v in environment(folder).items() if not k.startswith("TENSORPLUG")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        request = {
            "target": judged.target,
            "library": judged.library,
            "device": judged.device,
            "folder": str(Path.cwd()),
        }
        answer, _ = self.ask({"open": request}, [], _START)
        if "raised" in answer:
            self.stop()
            raise NotJudgedError(f"{judged.target} cannot be opened: {answer['raised']}")
        self.names: list[str] | None = answer["names"]

    def _read(self) -> None:
        assert self._process.stdout is not None  # it is a pipe
        try:
            while (answer := program.receive(self._process.stdout)) is not None:
                self._answers.put(answer)
        except Exception as error:  # noqa: BLE001  # it may send anything
            self._answers.put(f"it damaged its answers: {type(error).__name__}: {error}")
        self._answers.put("")

    def ask(self, header: dict[str, Any], blobs: list[bytes], seconds: float) -> Any:
        """Return the header and blobs of an answer.

        Raises:
            LostError: there is none.

        """
        assert self._process.stdin is not None  # it is a pipe
        with suppress(BrokenPipeError):
            program.send(self._process.stdin, header, blobs)
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise LostError(f"it hung: it did not end within {seconds:g} s") from None
        if isinstance(answer, str):
            raise LostError(answer or self._end())
        return answer

    def _end(self) -> str:
        status, errors = self._path / "status.txt", self._path / "errors.txt"
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        for _ in range(100):
            if status.exists() and status.read_text("ascii").strip():
                break
            threading.Event().wait(0.02)
        code = int(status.read_text("ascii") or 0) if status.exists() else 0
        end = child_processes.describe_end(128 - code if code > 128 else code).text
        last = errors.read_text("utf-8", errors="replace").splitlines()[-3:]
        return "\n".join([end, *last])

    def stop(self) -> None:
        """Kill the process and what it has started."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):  # they have ended
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]  # both are pipes
        self._folder.cleanup()


class JudgeSession(Session):
    """Calls the callable; what is read of its inputs and results is what its process holds."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(build_engine, _LAYS_OUT)
        self.judged = judged
        self.copied = 0
        self.lost = False
        self.last: list[Any] = []  # the inputs of the last call
        self._numbers = count()
        self._known: dict[int, int] = {}  # numbers of arrays, by their ids
        self._results: set[int] = set()
        self._forget: list[int] = []
        self._first: dict[int, Array] = {}
        self._caller = _Caller(judged)

    def refusal(self, spec: KernelSpec, case: Case) -> str:
        """Return why a case does not apply to the callable; empty if it does."""
        if any(array.dtype.kind == "T" for array in flat(case.inputs)):
            return "texts do not cross as bytes"
        names = self._caller.names
        if names is None:
            return ""
        missing = [
            name
            for name in spec.attributes
            if self.judged.renamed.get(name, name) not in names
            and not self._is_default(spec, case, name)
        ]
        return f"it takes no {', '.join(missing)}" if missing else ""

    def _is_default(self, spec: KernelSpec, case: Case, name: str) -> bool:
        others = {other: value for other, value in case.attributes.items() if other != name}
        given = spec.resolve(case.types, case.attributes)[0][name]
        try:
            return bool(spec.resolve(case.types, others)[0][name] == given)
        except (TensorplugError, TypeError, ValueError):  # it has no default
            return False

    def how(self, spec: KernelSpec, case: Case) -> tuple[Any, str]:
        """Return "native", for what runs.

        Raises:
            DeclinedError: the case does not apply.

        """
        why = self.refusal(spec, case)
        if why:
            raise DeclinedError(why)
        return "native", ""

    def call(
        self, spec: KernelSpec, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> list[Tensor]:
        """Call it; return its results.

        Raises:
            RaisedError: it raises.
            WrongResultError: its results are none.
            LostError: its process is lost.

        """
        keep = [next(self._numbers) for _ in spec.output_names]
        answer, blobs = self._asked("call", spec, [operands], attributes, keep=keep)
        self.copied = answer["copied"]
        arrays = self._arrays(answer, blobs)
        if len(arrays) != len(keep):
            raise WrongResultError(f"it returned {len(arrays)} results instead of {len(keep)}")
        with self.entered():
            tensors = [as_tensor(array) for array in arrays]
        for number, tensor, array in zip(keep, tensors, arrays, strict=True):
            self._register(tensor._buffer, number)
            self._results.add(number)
            self._first[number] = array
        return tensors

    def soaked(
        self,
        spec: KernelSpec,
        sets: Sequence[Sequence[Any]],
        attributes: Mapping[str, Any],
        rounds: int,
        threads: int,
    ) -> list[Array]:
        """Return the results of all threads, one behind the other."""
        return self._arrays(
            *self._asked("soak", spec, sets, attributes, rounds=rounds, threads=threads)
        )

    def _asked(
        self,
        what: str,
        spec: KernelSpec,
        sets: Sequence[Sequence[Any]],
        attributes: Mapping[str, Any],
        **more: Any,
    ) -> Any:
        arrays = [[mapped(lambda x: x._buffer, one) for one in inputs] for inputs in sets]
        known, outputs = spec.resolve(types_of(arrays[0]), attributes)
        names, renamed = self._caller.names, self.judged.renamed
        plain = {
            renamed.get(name, name): value
            for name, value in plain_attributes(known).items()
            if names is None or renamed.get(name, name) in names
        }
        self.last = arrays[0]
        roots: dict[int, Array] = {}
        inputs = [[mapped(lambda x: self._described(x, roots), x) for x in one] for one in arrays]
        types = [[type_.dtype.name, list(type_.shape)] for type_ in outputs if type_.known]
        header = {"do": what, "inputs": inputs, "roots": list(roots), "types": types, **more}
        header |= {"poison": self.judged.poison, "out": "out" if "out" in (names or ()) else ""}
        blobs = [x.ravel(order="K").tobytes() for x in roots.values()]
        return self._ask(header, [*blobs, pickle.dumps(plain)])

    def _ask(self, header: dict[str, Any], blobs: list[bytes] | None = None) -> Any:
        forget, self._forget = self._forget, []
        try:
            answer = self._caller.ask({**header, "forget": forget}, blobs or [], self.judged.limit)
        except LostError:
            self.lost = True
            raise
        if "refused" in answer[0]:
            raise DeclinedError(answer[0]["refused"])
        if "raised" in answer[0]:
            raise RaisedError(f"it raised {answer[0]['raised']}")
        return answer

    def _arrays(self, answer: Mapping[str, Any], blobs: Sequence[bytes]) -> list[Array]:
        items = []
        for (name, shape), blob in zip(answer["outputs"], blobs, strict=True):
            try:
                items.append(array_of((name, shape), bytearray(blob)))
            except (TensorplugError, TypeError, ValueError) as error:
                raise WrongResultError(f"it returned {name} {shape}: {error}") from error
        return items

    def _register(self, array: Array, number: int) -> None:
        self._known[id(array)] = number
        weakref.finalize(array, self._gone, id(array), number)

    def _gone(self, place: int, number: int) -> None:
        self._known.pop(place, None)
        self._first.pop(number, None)
        self._results.discard(number)
        self._forget.append(number)

    def _described(self, array: Array, roots: dict[int, Array]) -> dict[str, Any]:
        """Return where an array lies in its process; memory that it lacks joins ``roots``."""
        number = self._known.get(id(array))
        if number in self._results:
            return {"view": number}
        root = _root(array)
        if id(root) not in self._known:
            self._register(root, next(self._numbers))
            roots[self._known[id(root)]] = root
        if id(array) not in self._known:
            self._register(array, next(self._numbers))
        return {
            "view": self._known[id(array)],
            "root": self._known[id(root)],
            "dtype": dt.of(array.dtype).name,
            "shape": array.shape,
            "strides": array.strides,
            "offset": offset(array),
        }

    def read(self, tensor: Tensor) -> Array:
        """Return what the callable's process has in an array now; of a result, first what it had
        when it was returned.
        """
        number = self._known.get(id(tensor._buffer))
        if number is None:
            return super().read(tensor)
        if number in self._first:
            return self._first.pop(number)
        (array,) = self._arrays(*self._ask({"do": "read", "view": number}))
        return array

    def overwrite(self) -> None:
        """Change all memory that was sent; what is sent later is new."""
        self._ask({"do": "overwrite"})
        self._known = {place: n for place, n in self._known.items() if n in self._results}

    def close(self) -> None:
        """End the process."""
        self._caller.stop()
        super().close()


def _root(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def offset(array: Array) -> int:
    """Return how many bytes an array begins behind its memory."""
    places = (x.__array_interface__["data"][0] for x in (array, _root(array)))
    return next(places) - next(places) if array.size else 0
