"""Profiles for reading: the summary, the tables at two widths, the trace file."""

from __future__ import annotations

import inspect
import io
import json
from itertools import pairwise

import jsonschema
import pytest
from tests.core.support import clocks

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.observers.profile_views import bytes_text
from tensorplug.testing import isolated_engine

work = clocks.profile_of_four_calls
LINE = inspect.getsourcelines(work)[1] + next(
    at for at, line in enumerate(inspect.getsourcelines(work)[0]) if "# the first" in line
)


def shown(profile, **options):
    file = io.StringIO()
    profile.show(file=file, **options)
    return [line.rstrip() for line in file.getvalue().splitlines()]


HEADING = ["5 kernel calls: 37.000 ms of 37.000 ms", "peak 36 B, new 12 B, 1 upload, 0 transfers"]


def test_the_summary(clock):
    assert str(work(clock)).splitlines() == [
        *HEADING,
        "   94.6% in 1 call of Detour(float32[1,3]), decomposed on memory",
        "   54.1% in 1 call of Exp(float32[1,3]), native on memory",
        "   13.5% in 1 call of Multiply(float32[1,3], float32[1,3]), native on memory",
    ]


WIDE = """
Kernel                               Calls  Total ms  Share                             New  On
──────────────────────────────────────────────────────────────────────────────────────────────────────────────
Detour float32[1,3]                      1    35.000   94.6% ██████░░░░░░░░░░░░░░░░░   12 B  memory decomposed
Exp float32[1,3]                         1    20.000   54.1% █████████████             12 B  memory native
Multiply float32[1,3], float32[1,3]      1     5.000   13.5% ███                       12 B  memory native
Neg float32[1,3]                         2     2.000    5.4% █                         24 B  memory native
█ in the kernel itself, ░ in those it calls
"""  # noqa: E501  # as wide as the terminal
NARROW = """
Kernel                        Calls  Total ms  Share             New  On
────────────────────────────────────────────────────────────────────────────────
Detour float32[1,3]               1    35.000   94.6% ██░░░░░░  12 B  memory
                                                                      decomposed
Exp float32[1,3]                  1    20.000   54.1% ████      12 B  memory
                                                                      native
Multiply float32[1,3],            1     5.000   13.5% █         12 B  memory
float32[1,3]                                                          native
Neg float32[1,3]                  2     2.000    5.4%           24 B  memory
                                                                      native
█ in the kernel itself, ░ in those it calls
"""
WIDE_BY_CALL = """
 At ms  Kernel                                     ms   New  Live  On                 Line
──────────────────────────────────────────────────────────────────────────────────────────────────
 0.000  Detour float32[1,3]                    35.000  12 B  24 B  memory decomposed  clocks.py:38
10.000    Exp float32[1,3]                     20.000  12 B  24 B  memory native      clocks.py:38
30.000    Multiply float32[1,3], float32[1,3]   5.000  12 B  36 B  memory native      clocks.py:38
35.000  Neg float32[1,3]                        1.000  12 B  24 B  memory native      clocks.py:39
36.000  Neg float32[1,3]                        1.000  12 B  36 B  memory native      clocks.py:39
"""
NARROW_BY_CALL = """
 At ms  Kernel                                ms   New  On          Line
────────────────────────────────────────────────────────────────────────────────
 0.000  Detour float32[1,3]               35.000  12 B  memory      clocks.py:38
                                                        decomposed
10.000    Exp float32[1,3]                20.000  12 B  memory      clocks.py:38
                                                        native
30.000    Multiply float32[1,3],           5.000  12 B  memory      clocks.py:38
          float32[1,3]                                  native
35.000  Neg float32[1,3]                   1.000  12 B  memory      clocks.py:39
                                                        native
36.000  Neg float32[1,3]                   1.000  12 B  memory      clocks.py:39
                                                        native
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"width": 110}, WIDE),
        ({"width": 80}, NARROW),
        ({"width": 110, "by": "call"}, WIDE_BY_CALL),
        ({"width": 80, "by": "call"}, NARROW_BY_CALL),
    ],
)
def test_the_tables(clock, options, expected):
    text = expected.replace(":39", f":{LINE + 1}").replace(":38", f":{LINE}")
    assert shown(work(clock), **options) == [*HEADING, *text.strip("\n").splitlines()]


def test_a_table_in_ascii(clock):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    work(clock).show(file=file, width=80)
    file.flush()
    text = raw.getvalue().decode("ascii")
    assert " 94.6% ##------ " in text
    assert "# in the kernel itself, - in those it calls" in text


def test_a_table_is_cut_and_says_so(clock):
    p = work(clock)
    for by, rows in (("kernel", 4), ("call", 5)):
        lines = shown(p, by=by, limit=2, width=110)
        assert lines[-1] == f"and {rows - 2} more; limit=None shows all"
        for limit in (rows, None):
            assert "more" not in shown(p, by=by, limit=limit, width=110)[-1]


def test_without_calls_there_is_a_heading_only(clock):
    lines = shown(tp.profile(lambda: None), width=80)
    assert lines == [
        "0 kernel calls: 0.000 ms of 0.000 ms",
        "peak 0 B, new 0 B, 0 uploads, 0 transfers",
    ]
    assert str(tp.profile(lambda: None)).splitlines() == lines


def test_standard_output_is_the_default(clock, capsys):
    work(clock).show(width=80)
    assert capsys.readouterr().out.splitlines()[:2] == HEADING


def test_bad_arguments(clock):
    with pytest.raises(ArgumentError, match="by must be one of 'kernel', 'call', got 'time'"):
        tp.profile(lambda: None).show(by="time")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (100 * 1024, "100 KiB"),
        (999 * 1024, "999 KiB"),
        (1000 * 1024, "1.0 MiB"),
        (5 * 1024**3, "5.0 GiB"),
        (3 * 1024**4, "3.0 TiB"),
    ],
)
def test_bytes_in_few_characters(count, text):
    assert bytes_text(count) == text


# Traces ---------------------------------------------------------------------------------

EVENT = {  # of the Trace Event Format what we use, and nothing else
    "type": "object",
    "required": ["ph", "name", "pid", "args"],
    "oneOf": [
        {
            "properties": {
                "ph": {"const": "X"},
                "name": {"type": "string"},
                "cat": {"enum": ["native", "decomposed", "fallback"]},
                "ts": {"type": "number", "minimum": 0},
                "dur": {"type": "number", "minimum": 0},
                "pid": {"type": "integer"},
                "tid": {"type": "integer"},
                "args": {"type": "object"},
            },
            "required": ["ts", "dur", "tid", "cat"],
            "additionalProperties": False,
        },
        {
            "properties": {
                "ph": {"const": "C"},
                "name": {"const": "live bytes"},
                "ts": {"type": "number", "minimum": 0},
                "pid": {"type": "integer"},
                "args": {
                    "type": "object",
                    "properties": {"bytes": {"type": "integer", "minimum": 0}},
                    "required": ["bytes"],
                },
            },
            "required": ["ts"],
            "additionalProperties": False,
        },
        {
            "properties": {
                "ph": {"const": "M"},
                "name": {"enum": ["process_name", "thread_name"]},
                "pid": {"type": "integer"},
                "tid": {"type": "integer"},
                "args": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                },
            },
            "required": ["tid"],
            "additionalProperties": False,
        },
    ],
}
TRACE = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "traceEvents": {"type": "array", "items": EVENT},
        "displayTimeUnit": {"enum": ["ms", "ns"]},
    },
}


def saved(profile, path):
    profile.save_trace(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(trace, TRACE)
    return trace["traceEvents"]


def calls(events):
    return [event for event in events if event["ph"] == "X"]


def test_a_trace_holds_the_calls(clock, tmp_path):
    events = saved(work(clock), tmp_path / "trace.json")
    assert [(call["name"], call["ts"], call["dur"], call["cat"]) for call in calls(events)] == [
        ("Detour", 0, 35_000, "decomposed"),
        ("Exp", 10_000, 20_000, "native"),
        ("Multiply", 30_000, 5_000, "native"),
        ("Neg", 35_000, 1_000, "native"),
        ("Neg", 36_000, 1_000, "native"),
    ]
    args = calls(events)[2]["args"]
    assert args.pop("line").endswith(f"clocks.py:{LINE}")
    assert args == {
        "inputs": "float32[1,3], float32[1,3]",
        "outputs": "float32[1,3]",
        "attributes": {},
        "how": "native",
        "owner": "memory-distribution 2.0",
        "backend": "memory",
        "device": "memory",
        "new bytes": 12,
    }
    counted = [(event["ts"], event["args"]["bytes"]) for event in events if event["ph"] == "C"]
    assert counted == [(30_000, 24), (35_000, 36), (35_000, 24), (36_000, 24), (37_000, 36)]


def test_calls_of_a_real_program_nest_and_time_goes_on(tmp_path):
    def loss(x):
        return tp.sum(tp.nn.log_softmax(x * 2.0))

    with isolated_engine("cpu"):
        tp.unregister_kernel("LogSoftmax", "cpu")  # it is decomposed now
        with tp.profile() as p:
            for _ in range(3):
                tp.grad(loss)(tp.asarray([[1.0, 2.0, 3.0]]))
    events = saved(p, tmp_path / "trace.json")
    times = [event["ts"] for event in events if "ts" in event]
    assert times == sorted(times)
    result = calls(events)
    assert len(result) == len(p.kernels)
    open_until = []
    depths = []
    for item in result:  # a stack, as the viewer builds it
        start, end = item["ts"], item["ts"] + item["dur"]
        while open_until and open_until[-1] <= start:
            open_until.pop()
        assert all(end <= until + 0.0005 for until in open_until)
        depths.append(len(open_until))
        open_until.append(end)
    in_order = sorted(p.kernels, key=lambda record: record.start)
    assert depths == [event.depth for event in in_order]
    assert 1 in depths
    for first, second in pairwise(item for item in in_order if item.depth == 0):
        assert first.start + first.seconds <= second.start


@pytest.mark.usefixtures("clock")
def test_a_trace_without_calls_is_one_too(tmp_path):
    events = saved(tp.profile(lambda: None), tmp_path / "trace.json")
    assert [event["args"]["name"] for event in events] == ["tensorplug"]
