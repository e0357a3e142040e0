"""A backend of tensorplug on XLA, by way of JAX; its hooks are in ``plugin``."""

from __future__ import annotations

from tensorplug_xla import importing as _importing  # noqa: F401  # first: see there
