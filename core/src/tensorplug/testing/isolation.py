"""A separate engine for a test that registers or removes entries."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tensorplug.dispatch.context import Context, use_context
from tensorplug.plugins.assembly import build_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.engine.engine import Engine


@contextmanager
def isolated_engine(backend: str | None = None) -> Iterator[Engine]:
    """Run a ``with`` block on a new engine with its own registry and devices.

    Registrations and devices end with the block; do not use its tensors after it. ``backend`` is
    the active one; otherwise the engine chooses.

    Raises: the errors of ``Engine.open``.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> with tp.testing.isolated_engine("cpu"):
        ...     handle = tp.register_kernel(spec, "cpu", lambda x: x / 2)
        ...     tp.run_kernel(spec, [[1.0, 3.0]])
        Tensor([0.5, 1.5], dtype=float32, device='cpu')
        >>> "Halve" in tp.kernels_for("cpu")
        False

    """
    engine = build_engine()
    if backend:
        engine.devices.activate(engine.open(backend))
    try:
        with use_context(Context(engine)):
            yield engine
    finally:
        for opened in engine.devices.listed():
            engine.devices.close(opened.name)
