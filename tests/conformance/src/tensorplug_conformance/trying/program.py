"""The process that calls what is judged. It runs as a copy of this file, under another name.

It knows inputs, and no result: cases, oracle and comparison are in the process that asks, which
never imports what is judged. What crosses is a header of JSON, and bytes.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import pickle
import struct
import sys
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np

_POISON = 255  # each byte: NaN in every float
_LONGEST = 1 << 28  # bytes of a header
_BLOCKS = 4  # of memory of one size that are given back poisoned


class _RefusedError(Exception):
    """The library has no such arrays."""


def receive(file: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return the next header and its blobs; None at the end."""
    size = file.read(8)
    if len(size) < 8:
        return None
    (length,) = struct.unpack("<q", size)
    if not 0 <= length <= _LONGEST:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(file.read(length))
    blobs = [file.read(n) for n in header["sizes"] if n >= 0]
    if [len(blob) for blob in blobs] != header["sizes"]:
        raise ValueError("it is not whole")
    return header, blobs


def send(file: IO[bytes], header: dict[str, Any], blobs: list[bytes]) -> None:
    """Write a header and its blobs."""
    text = json.dumps({**header, "sizes": [len(blob) for blob in blobs]}).encode()
    for part in (struct.pack("<q", len(text)), text, *blobs):
        file.write(part)
    file.flush()


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:  # such as bfloat16
        kind: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        return kind


class _Calls:
    def __init__(self, target: str, library: str, device: str, folder: str) -> None:
        sys.path.insert(0, folder)
        module, _, name = target.rpartition(":")
        found: Any
        if module.endswith(".py"):
            stem = Path(module).stem
            spec: Any = importlib.util.spec_from_file_location(stem, module)
            found = sys.modules[stem] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found)
        else:
            found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        self.function = found
        self.library: Any = importlib.import_module(library) if library else None
        self.torch = self.library if library == "torch" else None
        self.device = device
        self.memory: dict[int, Any] = {}
        self.given: dict[int, Any] = {}
        self.copied = 0

    def names(self) -> list[str] | None:
        """Return the names of the arguments; None for any, nothing if they cannot be told."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return []
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            return None
        return [each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY]

    def allocated(self, blob: bytes) -> Any:
        memory = np.zeros((len(blob) + 31) // 16 * 16, np.uint8)  # whole numbers of any dtype
        memory[: len(blob)] = np.frombuffer(blob, np.uint8)
        return self.torch.from_numpy(memory).to(self.device) if self.torch else memory

    def _laid(
        self, root: int, dtype: str, shape: list[int], strides: list[int], offset: int
    ) -> Any:
        """Return an array in memory that was sent; a copy where the library has no such layout."""
        kind, memory = _dtype(dtype), self.memory[root]
        if self.torch and min(strides, default=0) >= 0:
            steps = [n // kind.itemsize for n in strides]
            whole = memory.view(getattr(self.torch, dtype))
            return whole.as_strided(shape, steps, offset // kind.itemsize)
        if self.torch:
            memory = memory.cpu().numpy()
        array = np.ndarray(shape, kind, memory, offset, strides)
        if self.library is None:
            return array
        if not self.torch:
            try:
                return self.library.from_dlpack(array)
            except Exception:  # noqa: BLE001  # each library has its own; it is counted
                pass
        self.copied += 1
        return self.foreign(np.ascontiguousarray(array).reshape(shape))

    def foreign(self, array: np.ndarray[Any, Any]) -> Any:
        """Return an array of the library."""
        if self.torch and array.dtype.kind == "V":
            bits = self.torch.from_numpy(array.view(np.int16))
            return bits.view(getattr(self.torch, array.dtype.name)).to(self.device)
        if self.torch:
            return self.torch.from_numpy(array).to(self.device)
        for make in ("from_dlpack", "asarray") if self.library else ():
            try:
                return getattr(self.library, make)(array)
            except Exception as error:  # noqa: BLE001  # each library has its own
                why = f"{self.library.__name__} takes no {array.dtype}: {error}"
        if self.library:
            raise _RefusedError(why[:200])
        return array

    def operand(self, one: Any) -> Any:
        """Return an input: the same object as long as it is the same array."""
        if one is None:
            return None
        if isinstance(one, list):
            return [self.operand(each) for each in one]
        key = one.pop("view")
        if key not in self.given:
            self.given[key] = self._laid(**one)
        return self.given[key]

    def poison(self, outputs: list[Any]) -> None:
        """Return memory of the outputs' sizes to the allocators, filled."""
        blocks = []
        for dtype, shape in outputs:
            size = _dtype(dtype).itemsize * int(np.prod(shape))
            for _ in range(_BLOCKS):
                blocks.append(np.full(size, _POISON, np.uint8))
                if self.torch:
                    full = self.torch.full((size,), _POISON, dtype=self.torch.uint8)
                    blocks.append(full.to(self.device))

    def out(self, outputs: list[Any]) -> Any:
        """Return poisoned arrays for results."""
        arrays = []
        for dtype, shape in outputs:
            kind = _dtype(dtype)
            memory = np.full(kind.itemsize * int(np.prod(shape)), _POISON, np.uint8)
            arrays.append(self.foreign(memory.view(kind).reshape(shape)))
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def call(
        self,
        inputs: list[Any],
        attributes: dict[str, Any],
        outputs: list[Any],
        poison: bool,  # as it comes
        out: str,
    ) -> list[Any]:
        """Return the results of a call."""
        if poison:
            self.poison(outputs)
        more = {out: self.out(outputs)} if out and poison else {}
        result = self.function(*inputs, **attributes, **more)
        if result is None and more:
            result = more[out]
        return list(result) if isinstance(result, tuple | list) else [result]


def _host(x: Any) -> np.ndarray[Any, Any]:
    """Return what an array of any library holds now."""
    if not isinstance(x, np.ndarray) and hasattr(x, "detach"):
        x = x.detach().cpu().resolve_conj().resolve_neg()
        if str(x.dtype) == "torch.bfloat16":
            bits = x.contiguous().view(sys.modules["torch"].int16).numpy()
            return np.asarray(bits).view(_dtype("bfloat16"))
        x = x.numpy()
    elif not isinstance(x, np.ndarray | np.generic) and hasattr(x, "__dlpack__"):
        try:
            x = np.from_dlpack(x)
        except Exception:  # noqa: BLE001  # such as one without a dtype of NumPy
            x = np.asarray(x)
    return np.array(x, copy=True, order="C")


def _told(arrays: list[np.ndarray[Any, Any]]) -> tuple[dict[str, Any], list[bytes]]:
    """Return the header and the blobs of results."""
    return {"outputs": [[x.dtype.name, list(x.shape)] for x in arrays]}, [
        x.tobytes() for x in arrays
    ]


def _answer(
    calls: _Calls, header: dict[str, Any], blobs: list[bytes]
) -> tuple[dict[str, Any], list[bytes]]:
    """Do what is asked; return a header and blobs."""
    for key in header.get("forget", ()):
        calls.given.pop(key, None)
        calls.memory.pop(key, None)
    what = header["do"]
    if what == "read":
        return _told([_host(calls.given[header["view"]])])
    if what == "overwrite":
        for memory in calls.memory.values():
            memory[...] = _POISON - memory
        return {}, []
    *roots, attributes = blobs
    for key, blob in zip(header["roots"], roots, strict=True):
        calls.memory[key] = calls.allocated(blob)
    values = pickle.loads(attributes)  # from the process that started this one
    sets = [[calls.operand(one) for one in inputs] for inputs in header["inputs"]]
    rest = values, header["types"], header["poison"], header["out"]
    if what == "soak":
        return _told(_soaked(calls, sets, rest, header["rounds"], header["threads"]))
    results = calls.call(sets[0], *rest)
    told, contents = _told([_host(x) for x in results])
    if len(results) == len(header["keep"]):
        calls.given.update(zip(header["keep"], results, strict=True))
    return {**told, "copied": calls.copied}, contents


def _soaked(
    calls: _Calls, sets: list[Any], rest: tuple[Any, ...], rounds: int, threads: int
) -> list[np.ndarray[Any, Any]]:
    """Return the results of all rounds of each thread, one thread behind the other."""
    results: list[list[np.ndarray[Any, Any]]] = [[] for _ in range(threads)]
    errors: list[Exception] = []

    def work(at: int) -> None:
        try:
            for number in range(rounds):
                inputs = sets[(at + number) % len(sets)]
                results[at] += [_host(x) for x in calls.call(inputs, *rest)]
        except Exception as error:  # noqa: BLE001  # raised below
            errors.append(error)

    workers = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return [x for some in results for x in some]


def main() -> None:
    """Answer until the input ends."""
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open("printed.txt", os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    calls: _Calls | None = None
    while (request := receive(questions)) is not None:
        told: dict[str, Any]
        blobs: list[bytes] = []
        try:
            if calls is None:
                calls = _Calls(**request[0]["open"])
                told = {"names": calls.names()}
            else:
                told, blobs = _answer(calls, *request)
        except _RefusedError as error:
            told = {"refused": str(error)}
        except Exception as error:  # noqa: BLE001  # it is the verdict
            told = {"raised": f"{type(error).__name__}: {error}"[:2000]}
        send(answers, told, blobs)


if __name__ == "__main__":
    main()
