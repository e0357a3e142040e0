"""The Python session of a guide: reads code as lines of JSON, and writes its output so."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_ROOT = str(Path(__file__).parents[2])


def main() -> None:
    """Answer until the input ends."""
    sys.path[0] = _ROOT
    from tests.core.support import guides

    sys.path[0] = ""  # the guide's folder, as in an interactive session
    names = {"__name__": "__main__"}
    answers = sys.stdout
    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["cwd"])
        answers.write(json.dumps(guides.run(asked["code"], names, "<guide>")) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
