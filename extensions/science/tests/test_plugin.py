"""What the core knows of this distribution, and its README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tensorplug as tp

README = Path(__file__).parents[1] / "README.md"


def test_quantiles_are_methods_as_soon_as_there_are_tensors():
    x = tp.asarray([1.0, 2.0, 4.0, 8.0])
    assert (x.quantile(0.5).tolist(), x.median().tolist()) == (3.0, 3.0)


def test_functions_have_hints_and_explanations():
    with pytest.raises(TypeError, match="here it is axis="):
        tp.quantile(tp.ones(3), 0.5, dim=0)
    assert "TopK" in str(tp.explain("quantile")) or "Sort" in str(tp.explain("quantile"))


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
)
def test_readme(block):
    exec(block, {})
