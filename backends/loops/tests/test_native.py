"""Faults of the places that the system's C compiler writes to."""

from __future__ import annotations

import ctypes
import tempfile

import numpy as np
import pytest

from tensorplug_loops import native

TEXT = """// {0}
void run(void **arrays, long long *numbers, long long begin, long long end) {{
  for (long long i = begin; i < end; i++) ((float *)arrays[0])[i] = (float)i;
}}
"""


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A process without kept libraries, whose folders are below ``tmp_path``."""
    try:
        native.command()
    except native.CompilationError as error:
        pytest.skip(str(error))
    monkeypatch.setenv(native.CACHE, "0")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return monkeypatch


def compute(name: str) -> list[float]:
    function = native.compile_text(TEXT.format(name))
    out = np.zeros(3, np.float32)
    function((ctypes.c_void_p * 1)(out.ctypes.data), None, 0, 3)
    return out.tolist()


def test_no_place_for_temporary_files_is_an_error_of_ours(bare):
    def refuse(*_arguments, **_more):
        raise OSError(28, "No space left on device")

    with bare.context() as patch:
        patch.setattr(native.tempfile, "TemporaryDirectory", refuse)
        with pytest.raises(native.CompilationError, match=r"No space left on device.*Set TMPDIR"):
            compute("blocked")
    assert compute("blocked") == [0.0, 1.0, 2.0]  # nothing is remembered


def test_a_damaged_cache_is_not_used(bare, tmp_path):
    bare.setenv(native.CACHE, str(tmp_path / "cache"))
    assert compute("damaged") == [0.0, 1.0, 2.0]
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    native._built.cache_clear()
    assert compute("damaged") == [0.0, 1.0, 2.0]
