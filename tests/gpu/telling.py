"""The reports of a step's program to the one that started it: a record in each line of a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

FILE: Final = "GPU_RECORDS"  # the environment variable that names the file


def tell(about: str, **what: Any) -> None:
    """Append a record; it is in the file when this returns."""
    line = json.dumps({"about": about, **what}, default=str) + "\n"
    name = os.environ.get(FILE)
    if name is None:
        print(line, end="", flush=True)
        return
    with Path(name).open("a", encoding="utf-8") as stream:
        stream.write(line)
