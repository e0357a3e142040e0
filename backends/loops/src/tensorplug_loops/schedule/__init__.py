"""From a group to statements for a device."""

from __future__ import annotations

from tensorplug_loops.schedule.programs import Launch, Program, plan

__all__ = ["Launch", "Program", "plan"]
