"""Multiple devices of one backend at once; a machine's only usable one appears twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.opencl.conftest import require_device

PROGRAM = """
import json, threading
import tensorplug as tp
from tensorplug_opencl import device

found = [candidate for candidate in device.available() if candidate.verdict.usable]
pair = (found * 2)[:2]
device.available = lambda: pair

def work(name, found):
    with tp.use_backend(name):
        a = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
        for _ in range(20):
            gradient = tp.grad(lambda v: tp.sum(v @ v))(a)
        found[name] = [gradient.device, gradient.tolist()]

listed = tp.devices("opencl")
with tp.use_backend("opencl"):
    x = tp.asarray([1.0, 2.0])
y = x.to("opencl:1")
z = x * 10 + y
threads, found = [], {}
for name in listed:
    threads.append(threading.Thread(target=work, args=(name, found)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tp.use_backend("opencl:" + listed["opencl"].hardware) as by_name:
    pass
tp.remove_backend("opencl:1")
print(json.dumps({
    "names": list(listed),
    "memory": all(info.memory > 0 for info in listed.values()),
    "dtypes": [tp.float32 in info.dtypes for info in listed.values()],
    "devices": [x.device, y.device, z.device],
    "values": [y.tolist(), z.tolist()],
    "threads": found,
    "by_name": by_name,
}))
"""


def test_two_devices_at_once():
    require_device()
    environment = {**os.environ, "TENSORPLUG_BACKEND": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # d/dA sum(A A) has the row sums of A in its columns and the column sums in its rows.
    gradient = [[3.0 + 4.0, 7.0 + 4.0], [3.0 + 6.0, 7.0 + 6.0]]
    assert json.loads(done.stdout) == {
        "names": ["opencl", "opencl:1"],
        "memory": True,
        "dtypes": [True, True],
        "devices": ["opencl", "host", "host"],
        "values": [[1.0, 2.0], [11.0, 22.0]],
        "threads": {name: [name, gradient] for name in ("opencl", "opencl:1")},
        "by_name": "opencl",
    }
