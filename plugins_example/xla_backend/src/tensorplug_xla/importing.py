"""Imports JAX, and leaves NumPy's random numbers as they were: the import draws some of them."""

from __future__ import annotations

import numpy as np

_state = np.random.get_state(legacy=False)  # noqa: NPY002  # which users' programs have seeded
import jax  # noqa: E402, F401  # see above

np.random.set_state(_state)  # noqa: NPY002  # as above
