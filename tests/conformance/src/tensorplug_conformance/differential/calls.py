"""Kernel calls of a program on disk: a file of records, and each array once, by its contents."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.comparing.compare import bits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tensorplug_conformance.case import Array


Digests = list[Any]  # per operand a digest, a list of them, or None
_RECORDS: Final = "calls"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the program: where a call comes from."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} in {self.function}"
        return f"{where}: {self.source}" if self.source else where


@dataclass(frozen=True, slots=True)
class Call:
    """The beginning of a call.

    ``text``: the kernel with the types of its inputs. ``attributes``: canonical ones. ``inputs``:
    digests of arrays. ``depth``: 0 for a call of the
    program itself, more inside a decomposition. ``elsewhere``: it ran on a backend that the
    program named, not on the one that is compared.
    """

    number: int
    kernel: str
    text: str
    attributes: dict[str, Any]
    inputs: Digests
    how: str
    depth: int
    place: Place | None
    elsewhere: bool

    @property
    def signature(self) -> tuple[str, str]:
        """What two runs of one program have in common: kernel, types and attributes."""
        return self.text, repr(sorted(self.attributes.items()))

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two calls the same one: the signature, and the bits of the inputs."""
        listed = [tuple(one) if isinstance(one, list) else one for one in self.inputs]
        return *self.signature, *listed


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the call of that number: its outputs, or the error that it raised."""

    number: int
    outputs: list[str] | None
    error: str = ""


class Arrays:
    """Arrays in a folder, each under a digest of its dtype, shape and bits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.written = 0

    def put(self, array: Array) -> str:
        """Write an array, if it is new; return its digest."""
        head = f"{array.dtype} {array.shape} ".encode()
        digest = hashlib.blake2b(head + bits(array), digest_size=16).hexdigest()
        path = self._folder / digest
        if not path.exists():
            data = pickle.dumps(array, protocol=5)
            path.write_bytes(data)
            self.written += len(data)
        return digest

    def get(self, digest: str) -> Array:
        """Return the array."""
        result: Array = pickle.loads((self._folder / digest).read_bytes())  # ours
        return result

    def operands(self, digests: Digests) -> list[Any]:
        """Return the arrays of a call's inputs."""
        return [
            self.operands(one) if isinstance(one, list) else None if one is None else self.get(one)
            for one in digests
        ]


class Writer:
    """Appends records to a folder, flushed one by one, so that a crash loses none."""

    def __init__(self, folder: Path) -> None:
        self.arrays = Arrays(folder)
        self._file = (folder / _RECORDS).open("ab")

    def write(self, record: object) -> None:
        """Append a ``Call``, an ``Outcome``, or a text that ends the record."""
        pickle.dump(record, self._file)
        self._file.flush()


def read_calls(folder: Path) -> tuple[list[Call], dict[int, Outcome], str]:
    """Return the calls in their order, their ends by number, and why the record is not whole."""
    calls: list[Call] = []
    outcomes: dict[int, Outcome] = {}
    why = ""
    for record in _records(folder / _RECORDS):
        if isinstance(record, Call):
            calls.append(record)
        elif isinstance(record, Outcome):
            outcomes[record.number] = record
        else:
            why = str(record)
    return sorted(calls, key=lambda call: call.number), outcomes, why


def _records(path: Path) -> Iterator[object]:
    if not path.exists():
        return
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)  # a process of ours wrote it
            except EOFError:
                return
