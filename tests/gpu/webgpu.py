"""The conformance suite on the best GPU that WebGPU finds, with the options of ``conformance.py``.

The exit status is 3 if there is none; a processor that acts as one does not count.
"""

from __future__ import annotations

import sys

import conformance
from telling import tell

from tensorplug.errors import BackendUnavailableError
from tensorplug_webgpu import adapters

NONE = 3


def main() -> int:
    try:
        first = adapters.find()[0]  # the best one, which the name without a number opens
    except BackendUnavailableError as error:
        why = str(error)
    else:
        if not adapters.is_processor(first):
            print(f"device: {adapters.name_of(first)}")
            sys.argv += ["--device", "webgpu"]
            return conformance.main()
        why = f"WebGPU finds no GPU: {adapters.name_of(first)} is a processor"
    tell("none", why=why)
    print(why)
    return NONE


if __name__ == "__main__":
    raise SystemExit(main())
