"""The peak of a device, by its name or its units, and rates as parts of it."""

from __future__ import annotations

import pytest
from peaks import KNOWN, lanes, of_units, peak_of, share

NAMES = (
    # as OpenCL names it, GB/s, TFLOP/s in float32
    ("NVIDIA H200 (NVIDIA CUDA)", "", 4800, 67),
    ("NVIDIA H200 NVL (NVIDIA CUDA)", "", 4800, 60),
    ("NVIDIA GH200 480GB (NVIDIA CUDA)", "", 4000, 67),
    ("NVIDIA H100 80GB HBM3 (NVIDIA CUDA)", "", 3350, 67),
    ("NVIDIA H100 PCIe (NVIDIA CUDA)", "", 2000, 51),
    ("NVIDIA A100-SXM4-80GB (NVIDIA CUDA)", "", 2039, 19.5),
    ("NVIDIA A100 80GB PCIe (NVIDIA CUDA)", "", 1935, 19.5),
    ("NVIDIA A100-SXM4-40GB (NVIDIA CUDA)", "", 1555, 19.5),
    ("Tesla V100-SXM2-16GB (NVIDIA CUDA)", "", 900, 15.7),
    ("Tesla T4 (NVIDIA CUDA)", "", 320, 8.1),
    ("NVIDIA L4 (NVIDIA CUDA)", "", 300, 30.3),
    ("NVIDIA L40S (NVIDIA CUDA)", "", 864, 91.6),
    ("NVIDIA GeForce RTX 4090 (NVIDIA CUDA)", "", 1008, 82.6),
    ("gfx942:sramecc+:xnack- (AMD)", "AMD Instinct MI300X", 5300, 163.4),
    ("gfx90a:sramecc+:xnack- (AMD)", "AMD Instinct MI250X", 1638.4, 23.95),
    ("Intel(R) Data Center GPU Max 1550 (Intel(R) OpenCL Graphics)", "", 3276.8, 52.4),
)  # fmt: skip


@pytest.mark.parametrize(("hardware", "board", "memory", "float32"), NAMES)
def test_a_device_in_the_table_has_the_peak_of_its_data_sheet(hardware, board, memory, float32):
    peak = peak_of({"kind": "GPU", "hardware": hardware, "board": board})
    assert (peak.memory, peak.flops["float32"]) == (memory, float32 * 1000)
    assert "sheet" in peak.source or "page" in peak.source


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4080 SUPER", "NVIDIA A1000"]
)
def test_a_device_with_a_longer_name_is_another_one(name):
    assert peak_of({"kind": "GPU", "hardware": name}) is None


def test_a_cpu_has_no_peak_even_if_it_has_the_name_of_a_gpu():
    assert (
        peak_of({"kind": "CPU", "hardware": "L4", "compute units": 8, "clock MHz": 3000}) is None
    )


@pytest.mark.parametrize(
    ("_pattern", "peak"), KNOWN, ids=lambda name: getattr(name, "pattern", "")
)
def test_each_row_is_of_a_plausible_size_and_names_its_source(_pattern, peak):
    assert 100 <= peak.memory <= 10_000
    assert 5_000 <= peak.flops["float32"] <= 200_000
    assert peak.flops.get("float64", 0) <= peak.flops["float32"] <= peak.flops.get("float16", 1e9)
    assert peak.source


def test_each_row_can_be_found():
    texts = [pattern.pattern for pattern, _ in KNOWN]
    assert len(set(texts)) == len(texts)
    plain = [text.split("(?!")[0].replace(r"\b", "").replace(".*", " ") for text in texts]
    found = [next(p.pattern for p, _ in KNOWN if p.search(name)) for name in plain]
    hidden = [text for text, other in zip(texts, found, strict=True) if text != other]
    assert not hidden, f"an earlier row takes their place: {hidden}"


UNITS = (
    ({"compute capability": "8.9", "compute units": 80, "clock MHz": 2000}, 80 * 2.0 * 128 * 2),
    ({"compute capability": "8.0", "compute units": 108, "clock MHz": 1410}, 108 * 1.41 * 64 * 2),
    ({"SIMDs per compute unit": 4, "SIMD width": 16, "compute units": 104, "clock MHz": 1700},
     104 * 1.7 * 64 * 2),
    ({"vendor": "Intel(R) Corporation", "compute units": 512, "clock MHz": 2400},
     512 * 2.4 * 8 * 2),
)  # fmt: skip


@pytest.mark.parametrize(("facts", "expected"), UNITS)
def test_an_unknown_gpu_has_the_peak_of_its_units_clock_and_lanes(facts, expected):
    peak = peak_of({"kind": "GPU", "hardware": "a new one", **facts})
    assert peak.flops == {"float32": pytest.approx(expected)}
    assert peak.memory is None
    assert str(facts["clock MHz"]) in peak.source


@pytest.mark.parametrize("lacking", ["compute units", "clock MHz", "compute capability"])
def test_without_units_clock_or_lanes_there_is_no_peak(lacking):
    facts = {"kind": "GPU", "compute capability": "9.0", "compute units": 10, "clock MHz": 1000}
    assert of_units(facts) is not None
    assert of_units({**facts, lacking: 0}) is None


def test_lanes_of_a_cpu_are_not_known():
    assert lanes({"kind": "CPU", "vendor": "Intel"}) is None


@pytest.mark.parametrize(
    ("rate", "of", "expected"),
    [(50, 200, 0.25), (None, 200, None), (50, None, None), (50, 0, None)],
)
def test_a_share_needs_both(rate, of, expected):
    assert share(rate, of) == expected
