"""OpenCL kernels, one module per family of ops; each holds a table called ``kernels``."""

from __future__ import annotations
