"""The parent of a worker: whatever a backend does to its parent, it does to this process.

``python keeper.py COMMAND...`` runs a command and waits for its end. Standard input is the
command's, standard error takes all that it prints, and standard output gets one line: how it
ended. If that line is missing, the command has ended its parent.

The supervisor runs this file as it is: it imports nothing of the package.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__: list[str] = []


def _main(command: list[str]) -> None:
    prints = [(os.POSIX_SPAWN_DUP2, 2, 1)]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=prints)
    os.close(0)  # else nobody would notice that the command no longer reads
    _, status = os.waitpid(process, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        how = f"was stopped by signal {os.WSTOPSIG(status)}"
    elif os.WIFSIGNALED(status):
        how = f"died of signal {os.WTERMSIG(status)}"
    else:
        how = f"ended with exit status {os.WEXITSTATUS(status)}"
    with suppress(BrokenPipeError):  # the supervisor is gone
        os.write(1, f"{how}\n".encode("ascii"))


if __name__ == "__main__":
    _main(sys.argv[1:])
