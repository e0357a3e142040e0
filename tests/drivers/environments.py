"""An environment for each driver, in which only that driver is visible, and its commands."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .drivers import Driver

ROOT: Final = Path(__file__).parents[2]
INSIDE: Final = Path(__file__).parent / "inside"
OURS: Final = ("core", "backends/loops", "extensions/train", "tests/conformance")
FOLDERS: Final = {"opencl": "backends/gpu_opencl", "webgpu": "plugins_example/webgpu_backend"}
# The caller's settings of Python, tensorplug and drivers do not apply to this driver.
_HIDDEN: Final = (
    *("PYTHON", "VIRTUAL_ENV", "TENSORPLUG_", "OCL_", "OPENCL_", "PYOPENCL_", "POCL_"),
    *("VK_", "WGPU_"),
)


class SetUpError(Exception):
    """An environment cannot be made; the text says why."""


class Environment:
    """The environment of one driver below ``folder``, made if it is not there.

    It has this repository's current state, and no programs or verdicts of earlier runs.
    """

    def __init__(self, driver: Driver, folder: Path) -> None:
        self.driver = driver
        self.folder = folder / driver.name
        self.log = self.folder / "log.txt"
        self._site = self.folder / "environment"
        self._vendors = self.folder / "vendors"
        self._cache = self.folder / "cache"
        self._bin = self._site / "bin"

    def set_up(self, seconds: float) -> None:
        """Create the environment.

        Raises:
            SetUpError: pip fails, or does not end in time.

        """
        for folder in (self._vendors, self._cache):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.log.write_bytes(b"")
        if not (self._bin / "python").exists():
            self._done([sys.executable, "-m", "venv", str(self._site)], seconds)
        extra = f"[{self.driver.extra}]" if self.driver.extra else ""
        ours = [str(ROOT / our) for our in OURS]
        pip = [str(self._bin / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        backend = ROOT / FOLDERS[self.driver.backend]
        self._done([*pip, "install", *ours, f"{backend}{extra}"], seconds)

    def _done(self, command: Sequence[str], seconds: float) -> None:
        code = self._run(command, seconds)
        if code != 0:
            how = "did not end" if code is None else f"ended with exit status {code}"
            raise SetUpError(f"{' '.join(command[1:4])} {how}; see {self.log}")

    def show(self, library: Path | str) -> None:
        """Make the loader see ``library`` alone, unless it sees it by itself."""
        if not self.driver.registered:
            (self._vendors / f"{self.driver.name}.icd").write_text(f"{library}\n")

    @property
    def library(self) -> Path | str | None:
        """The driver's library, None if it is not installed."""
        return self.driver.library(self._site)

    def command(self, name: str, *arguments: str, seconds: float) -> int | None:
        """Run a command of this environment; return its exit status, None if it did not end."""
        return self._run([str(self._bin / name), *arguments], seconds)

    def script(self, name: str, seconds: float) -> tuple[int | None, str]:
        """Run a script of ``inside``; return its exit status and all that it wrote."""
        begin = self.log.stat().st_size
        python = [str(self._bin / "python"), "-P", "-W", "ignore"]
        code = self._run([*python, str(INSIDE / name)], seconds)
        return code, self.log.read_bytes()[begin:].decode(errors="replace")

    def _variables(self) -> dict[str, str]:
        mine = {
            "OCL_ICD_VENDORS": str(self._vendors),
            "TENSORPLUG_OPENCL_CACHE": str(self._cache / "tensorplug"),
            "TENSORPLUG_WEBGPU_CACHE": str(self._cache / "tensorplug"),
            "VK_DRIVER_FILES": str(self.library or ""),  # no other driver of Vulkan's
            "XDG_CACHE_HOME": str(self._cache),  # where PoCL and Mesa keep compiled programs
            **self.driver.variables,
        }
        kept = {name: text for name, text in os.environ.items() if not name.startswith(_HIDDEN)}
        return kept | mine

    def _run(self, command: Sequence[str], seconds: float) -> int | None:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._variables(),
                cwd=self.folder,
                start_new_session=True,
            )
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
