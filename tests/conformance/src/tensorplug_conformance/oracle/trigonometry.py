"""References for trigonometric and hyperbolic functions: the wide ones of the C library."""

from __future__ import annotations

import numpy as np

from tensorplug_conformance.oracle.elementwise import inexact

acos = inexact(np.arccos)
acosh = inexact(np.arccosh)
asin = inexact(np.arcsin)
asinh = inexact(np.arcsinh)
atan2 = inexact(np.arctan2)
atanh = inexact(np.arctanh)
cosh = inexact(np.cosh)
sinh = inexact(np.sinh)
tan = inexact(np.tan)
