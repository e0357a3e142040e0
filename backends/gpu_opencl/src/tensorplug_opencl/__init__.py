"""The OpenCL backend of tensorplug. Importing it opens no device and loads no driver."""

from __future__ import annotations
