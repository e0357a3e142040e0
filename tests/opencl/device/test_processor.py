"""The digest distinguishes processors that programs are compiled differently for."""

from __future__ import annotations

import pytest

from tensorplug_opencl.machine import processor

ZEN = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9354
cpu MHz\t\t: 3250.000
flags\t\t: fpu sse2 avx2 avx512f

processor\t: 1
flags\t\t: of another
"""
ARM = """processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


@pytest.fixture
def told(monkeypatch, tmp_path):
    """Return a function that fakes the system's text on its processor and returns the digest."""
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor, "_CPUINFO", tmp_path / "cpuinfo")

    def say(text):
        (tmp_path / "cpuinfo").write_text(text)
        processor.read_facts.cache_clear()
        processor.compute_digest.cache_clear()
        return processor.compute_digest()

    yield say
    processor.read_facts.cache_clear()
    processor.compute_digest.cache_clear()


@pytest.mark.parametrize(
    ("text", "changed", "same"),
    [
        (ZEN, ZEN.replace("25", "26"), False),
        (ZEN, ZEN.replace("17", "2"), False),
        (ZEN, ZEN.replace(" avx512f", ""), False),
        (ZEN, ZEN.replace("3250", "1500"), True),  # it changes every second
        (ZEN, ZEN.partition("\n\n")[0] + "\n", True),  # however many there are
        (ARM, ARM.replace(" sve", ""), False),
        (ARM, ARM.replace("0xd40", "0xd4f"), False),
        (ARM, ARM.replace("50.00", "100.00"), True),
    ],
)
def test_the_digest(told, text, changed, same):
    assert changed != text
    assert (told(text) == told(changed)) is same


def test_the_model_is_for_people(told):
    told(ZEN)
    assert processor.read_model() == "AMD EPYC 9354"
