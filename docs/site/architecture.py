"""Draw the layers of the core, and the ways of three calls through them, as an SVG.

``python docs/site/architecture.py`` writes ``docs/images/architecture.svg``. The boxes come from
the layers in ``pyproject.toml``; a test compares the picture with them, and the ways with calls.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).parents[2]
PICTURE: Final = ROOT / "docs/images/architecture.svg"

PURPOSE: Final = {
    "plugins": "finds and loads plugins",
    "fft": "the public modules",
    "introspection": "explain, error hints",
    "library": "losses, statistics, spectra",
    "plugin": "what plugins import",
    "algorithms": "what backends share",
    "compile": "records calls, groups them",
    "rules": "derivatives and batches, as formulas",
    "observers": "profile, debug",
    "memory": "counted, freed",
    "autodiff": "the tape, and the way back",
    "mapping": "vmap",
    "engine": "plans a call the first time",
    "tensors": "operators, indexing, files",
    "ops": "public functions, kernel specs",
    "dispatch": "finds the plan of a call",
    "contract": "what a spec, a backend is",
    "system": "caches, processes",
    "errors": "every exception",
}
"""What a layer does, by one of its folders. Layers without an entry share a row."""

BACKENDS: Final = "backends"


class Way(NamedTuple):
    """The way of one call: the folders that it enters, and what the last stretch does."""

    call: str
    colour: str
    stations: tuple[str, ...]


WAYS: Final = (
    Way("add", "#1769aa", ("ops", "dispatch", BACKENDS)),
    Way("grad", "#c2570c", ("autodiff", "ops", "dispatch", BACKENDS, "rules")),
    Way("compile", "#237a3b", ("compile", "ops", "dispatch", BACKENDS)),
)

WIDTH: Final = 640
SHOWN: Final = 520  # pixels, where there is room
_LEFT, _RIGHT = 14, 396  # the rows' boxes; the lanes of the ways are beyond
_LANES: Final = (446, 518, 590)
_MONO: Final = "font-family='ui-monospace,Menlo,Consolas,monospace'"
_MONO_WIDTH, _TEXT_WIDTH = 10.4, 8.6  # of a character, in pixels


_FRAME: Final = """\
<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{SHOWN}'
 font-family='system-ui,Segoe UI,Helvetica,Arial,sans-serif'>
<title>The layers of tensorplug, and the ways of three calls through them</title>
<style>
.band{{fill:#e9eef4}} .plugin{{fill:#fdf1d8}} .box{{fill:#fff;stroke:#9aa7b5}}
.name{{font-size:17px;fill:#1b2733}} .purpose,.seam{{font-size:17px;fill:#3c4a58}}
.seam{{font-style:italic}} .head{{font-size:18px;fill:#1b2733;font-weight:600}}
.call{{font-size:17px;font-weight:700;text-anchor:middle}}
.way{{fill:none;stroke-width:4;stroke-linecap:round}}
.entry{{fill:none;stroke-width:2;stroke-dasharray:2 6}}
.number{{font-size:16px;font-weight:700;fill:#fff;text-anchor:middle}}
</style>
<defs><marker id='up' markerWidth='5' markerHeight='5' refX='3' refY='2.5' orient='auto'>
<path d='M0 0 L5 2.5 L0 5 z' fill='#c2570c'/></marker></defs>
<rect width='{WIDTH}' height='{height}' rx='10' fill='#fff'/>
<text x='18' y='35' class='head'>the core's folders, in layers</text>
{body}
</svg>
"""


class Row(NamedTuple):
    """One or several layers, drawn as one row."""

    folders: tuple[str, ...]
    purpose: str


def layers() -> list[tuple[str, ...]]:
    """Return the layers of the core, the uppermost first, each with its folders."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (core,) = (one for one in contracts if one.get("containers") == ["tensorplug"])
    return [
        tuple(layer.replace("(", "").replace(")", "").split(" : ")) for layer in core["layers"]
    ]


def rows() -> list[Row]:
    """Return the rows of the picture: layers that have no purpose of their own are one."""
    result: list[Row] = []
    for folders in layers():
        purpose = next((PURPOSE[folder] for folder in folders if folder in PURPOSE), "")
        if result and not purpose and not result[-1].purpose:
            result[-1] = Row(result[-1].folders + folders, "")
        else:
            result.append(Row(folders, purpose))
    return result


def _band(row: Row, top: float, kind: str = "band") -> tuple[list[str], float]:
    """Return a row's boxes, wrapped, with its purpose, and the height that they take."""
    texts: list[str] = []
    x: float = _LEFT + 10
    y = top + 8
    for folder in row.folders:
        width = len(folder) * _MONO_WIDTH + 16
        if x + width > _RIGHT - 8:
            x, y = _LEFT + 10, y + 34
        texts += [
            f"<rect x='{x:.0f}' y='{y:.0f}' width='{width:.0f}' height='28' rx='5' class='box'/>",
            f"<text x='{x + 8:.0f}' y='{y + 20:.0f}' {_MONO} class='name'>{escape(folder)}</text>",
        ]
        x += width + 8
    if row.purpose:
        if x + len(row.purpose) * _TEXT_WIDTH > _RIGHT:
            x, y = _LEFT + 12, y + 29
        text = escape(row.purpose)
        texts.append(f"<text x='{x + 2:.0f}' y='{y + 20:.0f}' class='purpose'>{text}</text>")
    height = y + 36 - top
    band = (
        f"<rect x='{_LEFT}' y='{top:.0f}' width='{WIDTH - 2 * _LEFT}' height='{height:.0f}' rx='8'"
        f" class='{kind}'/>"
    )
    return [band, *texts], height


def _way(way: Way, x: int, heights: dict[str, float], start: int) -> list[str]:
    """Return the line of a way: down through its stations, and back up where it goes back."""
    first = heights[way.stations[0]]
    texts = [f"<path d='M{x} {start} V{first:.0f}' stroke='{way.colour}' class='entry'/>"]
    y = first
    for station in way.stations[1:]:
        end = heights[station]
        if end > y:
            path = f"M{x} {y:.0f} V{end:.0f}"
        else:
            path = (
                f"M{x} {y:.0f} C{x + 34} {y - 40:.0f} {x + 34} {end + 40:.0f} {x + 15} {end:.0f}"
            )
        head = "" if end > y else " marker-end='url(#up)'"
        texts.append(f"<path d='{path}' stroke='{way.colour}' class='way'{head}/>")
        y = end
    for number, station in enumerate(way.stations, 1):
        texts += [
            f"<circle cx='{x}' cy='{heights[station]:.0f}' r='13' fill='{way.colour}'/>",
            f"<text x='{x}' y='{heights[station] + 6:.0f}' class='number'>{number}</text>",
        ]
    return texts


def draw() -> str:
    """Return the picture."""
    top = 64.0
    body: list[str] = []
    heights: dict[str, float] = {}
    for row in rows():
        texts, height = _band(row, top)
        body += texts
        heights |= dict.fromkeys(row.folders, top + height / 2)
        top += height + 6
    body.append(
        f"<text x='{_LEFT + 4}' y='{top + 22:.0f}' class='seam'>"
        "pluggy hooks, found through entry points</text>"
    )
    top += 36
    texts, height = _band(
        Row(("cpu", "opencl", "yours"), "backends: kernels for one kind of hardware"),
        top,
        "plugin",
    )
    body += texts
    heights[BACKENDS] = top + height / 2
    top += height + 6
    texts, height = _band(Row(("conformance suite",), "certifies them"), top, "plugin")
    body += texts
    top += height + 4
    body.append(
        f"<text x='{_LEFT + 4}' y='{top + 18:.0f}' class='seam'>"
        "The numbers are the order in which a call enters the layers.</text>"
    )
    top += 34
    for way, x in zip(WAYS, _LANES, strict=True):
        body += _way(way, x, heights, 50)
        head = f"<text x='{x}' y='34' fill='{way.colour}' {_MONO} class='call'>"
        body.append(f"{head}{way.call}</text>")
    return _FRAME.format(WIDTH=WIDTH, SHOWN=SHOWN, height=round(top), body="\n".join(body))


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
