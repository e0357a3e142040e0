"""``python -m tests.referee LIBRARY``: certify a library's kernels, and repeat its findings.

The report goes to ``out/referee/LIBRARY``. What the findings give is written into their table, and
the page is written anew.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.referee.findings import FOLDER, libraries, write_page


def certify(name: str, options: list[str]) -> Path:
    """Run the native rows of level 3, and return the folder of the report."""
    report = Path("out/referee", name)
    command = [
        sys.executable,
        "-m",
        "tensorplug_conformance",
        "run",
        "--backend",
        f"referee_{name}",
    ]
    chosen = options if "--kernels" in options else ["--kernels", "*", *options]
    rest = ["--level", "3", "--mode", "native", "--report", str(report), *chosen]
    subprocess.run([*command, *rest], check=False)  # most libraries fail
    return report


def record(name: str) -> set[tuple[str, str]]:
    """Repeat the findings of a library, write what they give, and return their rows."""
    path = FOLDER / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    library = next(each for each in libraries() if each.distribution == name)
    got = iter(json.dumps(library.repeat(each)) for each in library.findings)
    text = re.sub(r"(?m)^got = .*$", lambda _: f"got = {next(got)}", text)
    now = version(name).partition("+")[0]
    text = re.sub(r"(?m)^version = .*$", f'version = "{now}"', text, count=1)
    path.write_text(text, encoding="utf-8")
    return {
        (kernel, dtype)
        for each in library.findings
        for kernel in each.kernel.split(", ")
        for dtype in each.dtypes
    }


def main(name: str, *options: str) -> None:
    """Do all of it, and name the rows that fail without a finding."""
    known = record(name)
    write_page()
    if "--findings" in options:
        return
    report = json.loads((certify(name, list(options)) / "report.json").read_text("utf-8"))
    for row in report["rows"]:
        if row["status"] == "fail" and (row["kernel"], row["dtype"]) not in known:
            print(
                f"no finding for {row['kernel']} {row['dtype']}: {row['failures'][0]['message']}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
