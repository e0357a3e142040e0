"""Prints the facts of this environment's driver and of its trial: a line after ``@@``.

Runs in a driver's environment, which has only this repository's distributions.
"""

from __future__ import annotations

import json
import re

from tensorplug.errors import TensorplugError
from tensorplug_opencl import device as devices
from tensorplug_opencl.machine import processor


def main() -> None:
    """Print the facts of the device ``opencl``."""
    try:
        found = devices.finish_trials()
    except TensorplugError as error:
        print(f"@@ {json.dumps({'error': str(error)})}")
        return
    told: dict[str, object] = {"error": "it has no device"}
    if found:
        device, verdict = found[0]
        told = {
            "device": device.name.strip(),
            "version": device.driver_version.strip(),
            "trial": str(verdict),
            "findings": verdict.findings,
            "refused": found[0].refused,
        }
    print(f"@@ {json.dumps(told)}")


def processor_name() -> str:
    """Return the processor's name, and the numbers that distinguish models of one name."""
    facts = processor.read_facts()
    known = [word for word in ("cpu family", "model") if word in facts]
    numbers = [f"{word.removeprefix('cpu ')} {facts[word]}" for word in known]
    name = re.sub(r"\((R|TM|tm)\)", "", processor.read_model())
    return f"{name} ({', '.join(numbers)})" if numbers else name


if __name__ == "__main__":
    main()
