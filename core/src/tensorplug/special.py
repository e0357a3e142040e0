"""Special functions: error functions; extensions bring gamma and Bessel functions, entropies.

The names are those of ``scipy.special``. ``expit`` is ``nn.sigmoid``.
"""

from __future__ import annotations

from tensorplug.introspection import families
from tensorplug.ops.elementwise import unary
from tensorplug.ops.nn import activation

_public = {**families.public("special"), "erf": unary.erf, "expit": activation.sigmoid}
globals().update(_public)
__all__ = sorted(_public)
