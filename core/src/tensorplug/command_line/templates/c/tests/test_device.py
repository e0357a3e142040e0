"""What a device that works later does: late errors, its limit of memory, its loss."""

from __future__ import annotations

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.errors import BackendMemoryError, DeviceLostError, OutOfRangeError
from tensorplug.testing import isolated_engine

from tensorplug_acme.library import NAME, lib


def test_an_error_comes_with_the_read_of_what_depends_on_it():
    x = tp.asarray([1.0, 2.0])
    late = tp.take(x, tp.asarray([0, 5])) + x
    with pytest.raises(OutOfRangeError, match="GatherV2: index 5 is out of range"):
        late.numpy()
    tp.synchronize()  # told already
    assert (x + x).tolist() == [2.0, 4.0]
    tp.take(x, tp.asarray([7, 0]))
    with pytest.raises(OutOfRangeError, match="index 7"):
        tp.synchronize()


def test_a_limit_of_memory():
    with isolated_engine(NAME) as engine:
        backend = engine.open(NAME).backend
        x = tp.asarray(np.ones(1000, np.float32))
        lib.tp_device_limit(backend.opened, 14_000)
        assert backend.memory()["limit"] == 14_000
        with pytest.raises(BackendMemoryError, match="no room for 40000 bytes"):
            tp.zeros(10_000)
        y = x
        for _ in range(50):  # there is room as soon as earlier commands have ended
            y = y + x
        assert y.tolist() == [51.0] * 1000


def test_a_lost_device():
    with isolated_engine(NAME):
        x = tp.asarray([1.0, 2.0])
        tp.find_backend(NAME).inject_fault(DeviceLostError)
        with pytest.raises(DeviceLostError, match="Add: it was made to fail") as caught:
            (x + x).numpy()
        assert caught.value.op == "Add"
        for use in (lambda: x + x, x.numpy):
            with pytest.raises(DeviceLostError, match="the device is lost"):
                use()
        assert "the device is lost" in tp.find_backend(NAME).explain_loss()
        with pytest.warns(tp.errors.BackendWarning, match=f"buffers on {NAME!r} are lost"):
            tp.set_backend(NAME)
        assert (tp.asarray([1.0]) + 1).tolist() == [2.0]


def test_the_library_has_the_version_of_the_header():
    assert lib.tp_version() == lib.TP_VERSION
