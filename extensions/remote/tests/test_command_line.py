"""The command ``tensorplug-remote``."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

import tensorplug as tp
from tensorplug_remote.command_line import main

RUN = [sys.executable, "-c", "from tensorplug_remote.command_line import run; run()"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_serving_another_process(connect):
    command = [*RUN, "serve", "--backend", "cpu", "--port", "0", "--memory-limit", "1MiB"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said = process.stdout.readline().decode()
        address = re.fullmatch(r"serving cpu on NumPy .* at (127\.0\.0\.1:\d+)\n", said)[1]
        with connect(address):
            assert (tp.asarray([1.0, 2.0]) * 2).tolist() == [2.0, 4.0]
            with pytest.raises(tp.errors.BackendMemoryError, match="1048576 bytes"):
                tp.zeros(1 << 19).numpy()
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "is connected" in log.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "abacus"], "abacus"),
        (["--backend", "cpu", "--host", "0.0.0.0"], "needs a secret"),
        (["--backend", "cpu", "--secret-file", "/no/such/file"], "cannot be read"),
        (["--backend", "cpu", "--certificate", "/no/such/file"], "certificate '/no/such/file'"),
        (["--backend", "cpu", "--host", "192.0.2.1", "--secret-file", __file__], "assign"),
    ],
)
def test_what_is_wrong_is_told(capsys, arguments, words):
    assert main(["serve", "--port", "0", *arguments]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0", "-1", "1GB", "much"])
def test_sizes(capsys, size):
    with pytest.raises(SystemExit):
        main(["serve", "--backend", "cpu", "--message-limit", size])
    assert "invalid read_size value" in capsys.readouterr().err
