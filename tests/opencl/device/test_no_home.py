"""Users without a home, such as services and containers: nothing is kept, nothing is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tensorplug_opencl.programs import invokers

PROGRAM = """
import tensorplug as tp
with tp.use_backend("opencl"):
    x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
    print((x @ x).numpy().tolist(), float(tp.sort(x)[0, 0]))
"""


@pytest.mark.parametrize(
    ("home", "cache", "warnings"),
    [
        (None, None, 1),
        ("/dev/null", None, 1),
        pytest.param("{folder}/file/home", None, 1, marks=pytest.mark.slow),  # below a file
        pytest.param("{folder}", "0", 0, marks=pytest.mark.slow),
        pytest.param("{folder}", "{folder}/here", 0, marks=pytest.mark.slow),
    ],
)
def test_a_program_runs_with_at_most_one_warning(home, cache, warnings, tmp_path):
    dropped = ("HOME", "XDG_CACHE_HOME", "TENSORPLUG_OPENCL_CACHE", "PYOPENCL_NO_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    for name, value in (("HOME", home), ("TENSORPLUG_OPENCL_CACHE", cache)):
        if value is not None:
            environment[name] = value.format(folder=tmp_path)
    if home is not None and home.endswith("home"):
        (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[[7.0, 10.0], [15.0, 22.0]] 1.0\n"), done.stderr
    assert done.stderr.count("Warning") == warnings
    assert done.stderr.count("used to keep OpenCL programs") == warnings
    assert "Traceback" not in done.stderr  # none at exit either
    if home == "{folder}":  # pyopencl writes nothing there
        assert {path.name for path in tmp_path.iterdir()} == ({"here"} if cache != "0" else set())


def test_generated_code_is_kept_in_memory():
    kept = invokers._Generated()
    with pytest.raises(KeyError):
        _ = kept["run", (None, "f4")]
    kept.store_if_not_present(("run", (None, "f4")), "code")
    kept.store_if_not_present(("run", (None, "f4")), "other code")
    assert kept["run", (None, "f4")] == "code"
    kept.store_if_not_present(("run", ["f4"]), "code")
    with pytest.raises(KeyError):
        _ = kept["run", ["f4"]]
    for number in range(3000):
        kept.store_if_not_present(number, "code")
    assert len(kept._kept) <= 1024
    assert kept[2999] == "code"
