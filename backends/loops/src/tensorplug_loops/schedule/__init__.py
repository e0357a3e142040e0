"""From a group to statements for a device."""

from __future__ import annotations

from tensorplug_loops.schedule.launches import Launch, Program
from tensorplug_loops.schedule.programs import plan

__all__ = ["Launch", "Program", "plan"]
