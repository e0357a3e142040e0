"""``python -m tensorplug_llm``."""

from __future__ import annotations

from tensorplug_llm.command_line import run

if __name__ == "__main__":
    run()
