"""What importing this distribution costs, and its README."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_no_backend_is_imported_before_use():
    script = """
import sys
import tensorplug_train.plugin
print(*sorted(name for name in sys.modules if name.startswith("tensorplug_")))
"""
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert loaded == {"tensorplug_train"}


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)), {})
