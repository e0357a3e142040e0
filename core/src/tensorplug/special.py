"""Special functions, with the names of ``scipy.special``: gamma, error, Bessel, entropy."""

from __future__ import annotations

from tensorplug import ops
from tensorplug.ops import elementwise

_public = {**ops.public("special"), "erf": elementwise.erf}
globals().update(_public)
__all__ = sorted(_public)
