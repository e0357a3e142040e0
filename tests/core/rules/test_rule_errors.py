"""An exception inside a gradient rule says which rule it was, and leaves nothing behind."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.dispatch.context import current_context


class RuleError(Exception):
    pass


def failing(dy):  # a rule names what it asks for
    raise RuleError("no gradient today")


def test_the_note_names_kernel_and_input() -> None:
    with tp.use_backend("cpu"):
        x = tp.asarray([1.0, 2.0])
        with (
            tp.register_gradient("Exp", "x", failing, override=True),
            pytest.raises(RuleError, match="no gradient today") as caught,
        ):
            tp.grad(total(lambda t: tp.exp(t * 2.0)))(x)
        assert "in the gradient of 'Exp' with respect to 'x'" in caught.value.__notes__
        assert current_context().recording is None
        gradient = tp.grad(total(tp.exp))(x)
        assert gradient.type == x.type
        np.testing.assert_allclose(gradient.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)
