"""A profile as plain text, and as a trace for a viewer."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorplug.contract.spec import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from tensorplug.observers.profile_records import KernelRecord, ProfileFigures, Types


# Text -----------------------------------------------------------------------------------


def summary(profile: ProfileFigures) -> str:
    """Return a few lines: the totals, and the slowest kernels."""
    lines = [heading(profile)]
    total = profile.kernel_seconds
    for group in groups(profile.kernels)[:3]:
        share = 100 * group.seconds / total if total else 0.0
        calls = f"{group.calls} call{_s(group.calls)} of"
        lines.append(
            f"  {share:5.1f}% in {calls} {group.name}({types_text(group.inputs)}), "
            f"{group.how} on {group.device}"
        )
    return "\n".join(lines)


def heading(profile: ProfileFigures) -> str:
    """Return the totals on two lines."""
    calls, uploads, transfers = len(profile.kernels), profile.uploads, profile.transfers
    busy = profile.device_seconds
    worked = "" if busy is None else f", the device worked {busy * 1e3:.3f} ms"
    return (
        f"{calls} kernel call{_s(calls)}: {profile.kernel_seconds * 1e3:.3f} ms of "
        f"{profile.seconds * 1e3:.3f} ms{worked}\n"
        f"peak {bytes_text(profile.peak_bytes)}, new {bytes_text(profile.new_bytes)}, "
        f"{uploads} upload{_s(uploads)}, {transfers} transfer{_s(transfers)}"
    )


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def types_text(types: Types) -> str:
    """Return the types of inputs as text: ``float32[3], [int32[], int32[]]``."""
    return ", ".join(show(list(type_) if isinstance(type_, tuple) else type_) for type_ in types)


def bytes_text(count: int) -> str:
    """Return a number of bytes as short text: ``16 B``, ``1.5 KiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@dataclass(slots=True)
class Group:
    """The calls of one kernel with the same input types, mode and device."""

    name: str
    inputs: Types
    how: str
    device: str
    calls: int = 0
    seconds: float = 0.0
    self_seconds: float = 0.0
    new_bytes: int = 0


def groups(records: Sequence[KernelRecord]) -> list[Group]:
    """Return the groups of calls, the slowest first."""
    by_key: dict[Any, Group] = {}
    for record in records:
        key = (record.name, record.inputs, record.how, record.device)
        group = by_key.setdefault(key, Group(*key))
        group.calls += 1
        group.seconds += record.seconds
        group.self_seconds += record.self_seconds
        group.new_bytes += record.new_bytes
    return sorted(by_key.values(), key=lambda group: -group.seconds)


# Trace ----------------------------------------------------------------------------------


def save_trace(profile: ProfileFigures, path: str | PathLike[str]) -> None:
    """Write the calls in the Trace Event Format; see ``Profile.save_trace``."""
    trace = {
        "traceEvents": [*_names(profile), *_calls(profile)],
        "displayTimeUnit": "ms",
        "otherData": {"summary": heading(profile).replace("\n", ", ")},
    }
    Path(path).write_text(json.dumps(trace, allow_nan=False), encoding="utf-8")


def _names(profile: ProfileFigures) -> Iterator[dict[str, Any]]:
    """Yield the events that name the process and its threads."""
    yield _name("process_name", 0, "tensorplug")
    for thread, name in profile.threads.items():
        yield _name("thread_name", thread, name)


def _name(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": os.getpid(), "tid": thread, "args": {"name": name}}


def _calls(profile: ProfileFigures) -> Iterator[dict[str, Any]]:
    """Yield an event for each call and for the bytes in use after it, sorted by time."""
    events = []
    for kernel in profile.kernels:
        end = kernel.start + kernel.seconds
        events.append(_call(kernel))
        events.append(
            {
                "ph": "C",
                "name": "live bytes",
                "ts": _microseconds(end),
                "pid": os.getpid(),
                "args": {"bytes": kernel.live_bytes},
            }
        )
    yield from sorted(events, key=lambda event: event["ts"])


def _call(record: KernelRecord) -> dict[str, Any]:
    start, end = _microseconds(record.start), _microseconds(record.start + record.seconds)
    return {
        "ph": "X",
        "name": record.name,
        "cat": record.how,
        "ts": start,
        "dur": round(end - start, 3),
        "pid": os.getpid(),
        "tid": record.thread,
        "args": {
            "inputs": types_text(record.inputs),
            "outputs": types_text(record.outputs),
            "attributes": {name: str(value) for name, value in record.attributes.items()},
            "how": record.how,
            "owner": record.owner,
            "backend": record.backend,
            "device": record.device,
            "new bytes": record.new_bytes,
            "line": "" if record.site is None else str(record.site),
        },
    }


def _microseconds(seconds: float) -> float:
    """Return a time in microseconds, with the clock's resolution of a nanosecond."""
    return round(seconds * 1e6, 3)
