"""Prints the facts of this environment's adapter and of its trial: a line after ``@@``.

Runs in a driver's environment, which has only this repository's distributions.
"""

from __future__ import annotations

import json

from tensorplug.errors import TensorplugError
from tensorplug_webgpu import adapters, trial


def main() -> None:
    """Print the facts of the device ``webgpu``."""
    told: dict[str, object] = {}
    try:
        adapter = adapters.find()[0]
        told = {
            "device": adapters.name_of(adapter),
            "version": adapter.info["description"],
            "trial": "sound",
            "findings": [],
            "refused": "",
        }
        trial.check(adapter)
    except trial.UndecidedError as error:
        told = {"error": str(error)}
    except TensorplugError as error:
        refused = {"trial": "unsound", "refused": str(error)}
        told = told | refused if told else {"error": str(error)}
    print(f"@@ {json.dumps(told)}")


if __name__ == "__main__":
    main()
