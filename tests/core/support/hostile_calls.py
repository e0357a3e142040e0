"""Calls public functions with arguments beyond every limit; prints what is not one of our errors.

A program of its own, which test_hostile_calls starts: a call may end the process, so each function
is called in a child, whose memory is limited, and whose calls end after a second.
"""

from __future__ import annotations

import inspect
import os
import resource
import signal
import sys
from types import MappingProxyType

import numpy as np
from tests.core.support import valid_calls
from tests.core.support.bad_calls_limits import FULL, LONE, LONG, PLACES, SHORT, cyclic, deep

import tensorplug as tp
from tensorplug.errors import TensorplugError

VALUES = {
    **{f"2**{bits}": 2**bits for bits in (31, 40, 62, 63, 64, 200)},
    **{f"-2**{bits}": -(2**bits) for bits in (31, 63, 200)},
    "long integer": LONG,
    "(2**40, 2**40)": (2**40, 2**40),
    "(0, 2**63)": (0, 2**63),
    "(1,) * 65": (1,) * 65,
    "range": range(10**12),
    "surrogate": LONE,
    "list of a surrogate": [LONE],
    "cyclic list": cyclic(),
    "wide cyclic list": cyclic(2),
    "deep list": deep(3000),
    "rank 40": SHORT,
    "integers of rank 40": PLACES,
    "rank 64": FULL,
    "booleans of rank 64": FULL > 0,
    "huge array": np.broadcast_to(np.float32(1), (2**40,)),
}
MEMORY = 3 << 30
SECONDS = 1


class Late(BaseException):
    """A call took too long."""


def stop(*_):
    raise Late


def foreign(function, arguments, options=MappingProxyType({})):
    """Return what a call raises that is not one of our errors, and None if there is nothing."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        function(*arguments, **options)
    except TensorplugError:
        return None
    except BaseException as error:  # noqa: BLE001  # to name it
        return f"{type(error).__name__}: {ascii(str(error))[:100]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def attempt(name):
    """Call a function with each value in the place of each argument; print what is foreign.

    Arguments that the good call leaves out are passed by name.
    """
    function = valid_calls.FUNCTIONS[name]
    tensors, rest = valid_calls.CALLS[name]
    good = [*tensors, *rest]
    for at in range(len(good)):
        for label, value in VALUES.items():
            result = foreign(function, [*good[:at], value, *good[at + 1 :]])
            if result:
                print(f"{name}: argument {at} is {label}: {result}", flush=True)
    for parameter in [*inspect.signature(function).parameters.values()][len(good) :]:
        if parameter.default is parameter.empty or parameter.kind is parameter.POSITIONAL_ONLY:
            continue
        for label, value in VALUES.items():
            result = foreign(function, good, {parameter.name: value})
            if result:
                print(f"{name}: {parameter.name} is {label}: {result}", flush=True)


def main(names):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, stop)
    tp.set_backend("cpu")
    tp.add(1, 1)  # the children share the engine
    for name in names:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            attempt(name)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status:
            print(f"{name}: the process ended with status {status}", flush=True)
    print(f"{len(names)} functions", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(valid_calls.CALLS))
