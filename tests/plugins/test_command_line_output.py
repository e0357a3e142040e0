"""What the commands print: for people on terminals, for grep in pipes, for programs as JSON."""

from __future__ import annotations

import io
import json
import re
import sys
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from tensorplug.command_line.commands import main
from tensorplug.command_line.output import Column, Printer
from tensorplug.plugins.metadata import core_version

from .conftest import GOOD, GOOD_SOURCE, Site, backend, extension
from .terminals import NO_RICH, command, on_terminal

needs_terminals = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no such terminals"
)
SCHEMA = json.loads((files("tensorplug.command_line") / "output.schema.json").read_text("utf-8"))
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


# JSON -----------------------------------------------------------------------------------


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"})


@pytest.mark.parametrize(
    ("definition", "arguments", "code"),
    [
        ("backends", "backends --json", 0),
        ("backends", "--json backends", 0),
        ("devices", "devices minimal --json", 0),
        ("kernels", "kernels soft* --backend minimal --json", 0),
        ("kernels", "kernels add --backend minimal --dtype complex64 --json", 0),
        ("kernels", "kernels add --backend minimal --how host --json", 1),
        ("explain", "explain Softmax --backend minimal --json", 0),
        ("explain", "explain Softmax float32[3] --backend minimal --json", 0),
        ("explain", "explain nn.softmax --backend minimal --json", 0),
        ("explain", "explain matmul float32[2] float32[3] --backend minimal --json", 1),
        ("explain", "explain Add complex64[3] complex64[3] --backend minimal --json", 1),
        ("version", "--version --json", 0),
    ],
)
def test_json_is_as_its_schema_says(
    definition: str, arguments: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == code
    validator(definition).validate(json.loads(capsys.readouterr().out))


def test_json_of_the_doctor(site: Site) -> None:
    site.install(backend("odd", "import not_there"))
    ended = command(site, "doctor", "odd", "--json")
    validator("doctor").validate(json.loads(ended.stdout))


def test_the_schema_refuses_what_it_does_not_describe() -> None:
    line = {"backend": "a", "device": "a", "state": "ok", "finding": "", "advice": ""}
    assert validator("doctor").is_valid([line])
    assert not validator("doctor").is_valid([{**line, "state": "fine"}])
    assert not validator("doctor").is_valid([{**line, "more": ""}])
    assert not validator("doctor").is_valid([{"backend": "a"}])


def test_explained_calls_are_nested(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["explain", "SquaredDifference", "float32[8]", "float32[8]", "--backend", "minimal"]
    assert main(call) == 0
    text = capsys.readouterr().out
    assert main([*call, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["how"] == "decomposed"
    assert result["inner"]
    for inner in result["inner"]:
        assert f"{inner['call']}: {inner['how']}" in text


PRINTS = """
import os
os.write(1, b"from a driver\\n")
print("from a plugin")
"""


def test_standard_output_is_the_answer_alone(site: Site) -> None:
    site.install(extension("acme_ops", PRINTS))
    ended = command(site, "kernels", "Add", "--backend", "minimal", "--json")
    assert json.loads(ended.stdout)[0]["kernel"] == "Add"
    assert "from a driver" in ended.stderr
    assert "from a plugin" in ended.stderr


# Tables ---------------------------------------------------------------------------------

COLUMNS = [Column("name"), Column("inputs", cut=True), Column("detail")]
ROWS = [
    ["Add", "a, b", "short"],
    ["FusedBatchNorm", "x, mean, variance, offset", "one\ntwo words"],
]


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def printed(stream: io.StringIO, columns: list[Column], rows: list[list[str]]) -> list[str]:
    Printer(stream).table(columns, rows)
    return [COLOUR.sub("", line).rstrip() for line in stream.getvalue().splitlines()]


def test_a_row_is_one_whole_line_in_a_pipe() -> None:
    assert printed(io.StringIO(), COLUMNS, ROWS) == [
        "NAME            INPUTS                     DETAIL",
        "Add             a, b                       short",
        "FusedBatchNorm  x, mean, variance, offset  one; two words",
    ]


@pytest.mark.parametrize(
    ("width", "inputs", "encoding"),
    [
        (60, "x, mean, variance, offset", "utf-8"),
        (42, "x, mean, varia…", "utf-8"),
        (42, "x, mean, varian", "ascii"),
    ],
)
def test_cells_are_cut_at_the_width_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int, inputs: str, encoding: str
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(Terminal, "encoding", encoding)
    between = " " * (len(inputs) + 2)
    assert printed(Terminal(), COLUMNS, ROWS) == [
        f"NAME            {'INPUTS':{len(inputs)}}  DETAIL",
        f"Add             {'a, b':{len(inputs)}}  short",
        f"FusedBatchNorm  {inputs}  one",
        f"                {between}two words",
    ]


def test_the_last_column_wraps_below_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    text = "its hardware or driver is missing; the message says what it looked for"
    assert printed(Terminal(), [Column("state"), Column("finding")], [["failed", text]]) == [
        "STATE   FINDING",
        "failed  its hardware or driver is missing; the",
        "        message says what it looked for",
    ]


@needs_terminals
@pytest.mark.parametrize("columns", [80, 140])
def test_kernels_on_a_terminal(site: Site, columns: int) -> None:
    code, text = on_terminal(
        site, "kernels", "[f-g]*", "--backend", "minimal", "--dtype", "float64", columns=columns
    )
    assert code == 0
    assert COLOUR.search(text)
    title, *lines = COLOUR.sub("", text).splitlines()
    assert title.split() == ["KERNEL", "HOW", "OWNER", "INPUTS", "DETAIL"]
    assert max(map(len, lines)) <= columns
    names = [line.split()[0] for line in lines]  # none is continued below
    assert names == sorted(names, key=str.lower)
    assert {"FloorDiv", "GatherV2", "FusedBatchNorm"} <= set(names)
    assert "…" in text


@needs_terminals
def test_colours_may_be_off(site: Site) -> None:
    _, text = on_terminal(site, "kernels", "Add", "--backend", "cpu", columns=80, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", text)


@needs_terminals
def test_columns_set_by_the_user_count(site: Site) -> None:
    _, text = on_terminal(
        site, "kernels", "Depthwise*", "--backend", "cpu", columns=200, COLUMNS="70"
    )
    assert max(len(COLOUR.sub("", line)) for line in text.splitlines()) <= 70


@needs_terminals
def test_rows_are_whole_lines_on_a_terminal_without_rich(site: Site) -> None:
    (site.path / "rich.py").write_text(NO_RICH)
    _, text = on_terminal(site, "kernels", "Add", "--backend", "cpu", columns=40)
    assert text.splitlines()[1].split()[:2] == ["Add", "native"]
    assert "a, b" in text.splitlines()[1]


def test_kernels_in_a_pipe(site: Site) -> None:
    ended = command(site, "kernels", "[f-g]*", "--backend", "minimal", COLUMNS="40")
    title, *lines = ended.stdout.splitlines()
    assert "\x1b" not in ended.stdout
    assert title.split()[:2] == ["KERNEL", "HOW"]
    (line,) = [line for line in lines if line.startswith("FusedBatchNorm ")]
    assert re.split(" {2,}", line) == [
        "FusedBatchNorm",
        "decomposed",
        f"tensorplug {core_version()}",
        "x, scale?, offset?, mean, variance",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("softplus SOFTMAX", {"Softmax", "Softplus"}),
        ("soft* --how native", set()),
        ("add softplus --how native", {"Add"}),
        ("add softplus --how decomposed", {"Softplus"}),
        ("add softplus --how native --how decomposed", {"Add", "Softplus"}),
        ("add --dtype complex64 --how not-possible", {"Add"}),
    ],
)
def test_filters_of_kernels(
    arguments: str, expected: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["kernels", *arguments.split(), "--backend", "minimal"])
    said = capsys.readouterr()
    assert {line.split()[0] for line in said.out.splitlines()[1:]} == expected
    assert code == (0 if expected else 1)
    assert said.err == ("" if expected else "no such kernel runs native there\n")


def test_kernels_of_extensions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "SwiSH", "--backend", "cpu", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["kernel"], line["inputs"], line["outputs"]) == ("Swish", ["x"], ["out"])
    assert line["owner"].startswith("tensorplug-example-swish ")


# Foreign text ---------------------------------------------------------------------------

EVIL = r"\x1b]0;owned\x07\x1b[2J\x9b1m\u202e[red]\rok"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b1m\u202e[red]\rok"
HARDWARE = f"""
from tensorplug.plugin import DeviceInfo
import warnings
warnings.warn("{EVIL}")

@hookimpl
def tensorplug_devices():
    return [DeviceInfo("{EVIL}", "{EVIL}"), DeviceInfo("card", refused="{EVIL}")]
"""
RAISES = f"raise OSError('{EVIL}\\nodd  odd  ok')"
VERSION = EVIL.encode().decode("unicode_escape").replace("\r", "")  # a header is one line
ODD = GOOD_SOURCE.replace("good", "odd")
# What follows a sound backend, the command, and its exit code.
HOSTILE = {
    "a version": ("", "backends", 0, VERSION),
    "versions": ("", "--version --verbose", 0, VERSION),
    "an error while loading, as the doctor sees it": (RAISES, "doctor odd", 1, "1.2.3"),
    "an error while loading": (RAISES, "devices odd", 1, "1.2.3"),
    "an error of a command": (RAISES, "explain Add --backend odd", 1, "1.2.3"),
    "devices": (HARDWARE, "devices odd", 0, "1.2.3"),
    "devices, as the doctor sees them": (HARDWARE, "doctor odd", 1, "1.2.3"),
}


@needs_terminals
@pytest.mark.parametrize("rich", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_escape_reaches_the_terminal(site: Site, name: str, rich: bool) -> None:
    more, arguments, expected, version = HOSTILE[name]
    site.install(backend("odd", ODD + more, version=version))
    if not rich:
        (site.path / "rich.py").write_text(NO_RICH)
    code, text = on_terminal(site, *arguments.split(), columns=1000)
    assert code == expected, text
    plain = COLOUR.sub("", text) if rich else text
    assert plain.replace("\n", "").isprintable(), ascii(plain)
    assert SHOWN.replace(r"\r", "") in plain.replace(r"\r", "")
    assert "odd  odd  ok" not in {
        line.strip() for line in plain.splitlines()[1:] if line[0] != " "
    }


def test_what_the_user_types_is_harmless_too(site: Site) -> None:
    for arguments in (["explain", "Sum\x1b[2J", "--backend", "cpu"], ["--\x1b[2J"], ["\x1b[2J"]):
        ended = command(site, *arguments)
        assert ended.returncode == 2
        assert ended.stdout == ""
        assert ended.stderr.replace("\n", "").isprintable(), ended.stderr
        assert r"\x1b[2J" in ended.stderr


def test_a_row_in_a_pipe_cannot_be_forged(site: Site) -> None:
    site.install(GOOD, backend("odd", RAISES))
    ended = command(site, "doctor", "odd")
    assert len(ended.stdout.splitlines()) == 2
    assert ended.stdout.replace("\n", "").isprintable()
