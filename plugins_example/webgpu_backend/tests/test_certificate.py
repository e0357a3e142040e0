"""Checks of level 1 that a device's memory decides, and that a run hears of WebGPU's messages.

``make drivers`` tries all levels.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from wgpu.backends.wgpu_native._ffi import ffi, lib

from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.cli import main
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying.rows import run_row
from tensorplug_webgpu.faults import UsageError

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


def refuse(runtime):
    """Ask for a buffer of no use, and hide the error."""
    with suppress(UsageError), runtime.guard.using("a test"):
        runtime._device.create_buffer(size=16, usage=0)


def tell(runtime):
    """Have WebGPU say something while nothing is asked of it."""
    words = ffi.new("char []", b"A planted message")
    view = ffi.new("WGPUStringView *", {"data": words, "length": 17})
    report = runtime._device._uncaptured_error_callback
    report(ffi.NULL, lib.WGPUErrorType_Validation, view[0], ffi.NULL, ffi.NULL)


@pytest.mark.parametrize(
    ("plant", "said"),
    [(refuse, "tensorplug_webgpu: WebGPU refused a test"), (tell, "A planted message")],
)
def test_a_message_of_webgpu_fails_the_row(plant, said, monkeypatch):
    """Also where no call raises it."""
    session = Session(build_engine, "webgpu")
    runtime = session.device.backend.runtime
    record = runtime.record

    def planted(*arguments):
        plant(runtime)
        record(*arguments)

    monkeypatch.setattr(runtime, "record", planted)
    verdict = run_row(session, entries()["LogicalNot"], Row("LogicalNot", "bool", "native"), 0)
    assert verdict.status == "fail"
    assert any("it logged" in each.message and said in each.message for each in verdict.failures)
