"""Checks of level 1 that a device's memory decides; ``make drivers`` tries all levels."""

from __future__ import annotations

from tensorplug_conformance.cli import main

CHECKS = [
    "transfer float*",
    "transfer bool",
    "isolation",
    "buffers described",
    "figures of memory",
    "trims",
    "no rare leaks: kernels on 16 KiB",
]


def test_memory_conforms():
    """The limit that is declared is the adapter's, among others."""
    options = ["--backend", "webgpu", "--level", "1", "--jobs", "1", "--checks", ",".join(CHECKS)]
    assert main(["run", *options]) == 0
