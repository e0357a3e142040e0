"""What notebooks and the prompt show of a tensor."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize(
    "shape", [(), (0,), (3,), (0, 3), (3, 0, 2), (2000,), (40, 50), (1000,), (1001,)]
)
def test_the_shape_is_shown_where_numpy_shows_it(shape):
    written = repr(np.zeros(shape, np.float32))
    written = "".join(written.split())
    expected = written[written.index("[") if shape else 6 :].removesuffix(",dtype=float32)")
    found = "".join(repr(tp.zeros(shape)).split())
    assert found == f"Tensor({expected},dtype=float32,device='cpu')"


def read(html):
    """Return what is above the tables, the tables as rows of texts, and the whole text."""
    page = ET.fromstring(html)
    tables = [
        [[cell.text for cell in row] for row in table.iter("tr")] for table in page.iter("table")
    ]
    head = "".join(page[0].itertext()) if len(page) else ""
    return head, tables, "".join(page.itertext())


TEXTS = ["<b>bold</b>", "a & b", "x" * 100]
SHOWN = [  # tensor, its line, the tables
    (lambda: tp.asarray(3.5), "Tensor shape () dtype float32 device cpu", [[["3.5"]]]),
    (
        lambda: tp.asarray([1.0, 2.25]),
        "Tensor shape (2,) dtype float32 device cpu",
        [[["1.", "2.25"]]],
    ),
    (
        lambda: tp.asarray([[1, 20], [3, 4]]),
        "Tensor shape (2, 2) dtype int32 device cpu",
        [[["1", "20"], ["3", "4"]]],
    ),
    (
        lambda: tp.asarray([True, False]),
        "Tensor shape (2,) dtype bool device cpu",
        [[["True", "False"]]],
    ),
    (
        lambda: tp.asarray([0.1], dtype="bfloat16"),
        "Tensor shape (1,) dtype bfloat16 device cpu",
        [[["0.1001"]]],
    ),
    (
        lambda: tp.asarray(TEXTS),
        "Tensor shape (3,) dtype string device host",
        [[["'<b>bold</b>'", "'a & b'", "'" + "x" * 38 + "\u2026"]]],
    ),
    (lambda: tp.zeros((0, 3)), "Tensor shape (0, 3) dtype float32 device cpu", []),
    (
        lambda: tp.Variable([1.0], name="<w>"),
        "Variable '<w>' shape (1,) dtype float32 device cpu",
        [[["1."]]],
    ),
]


@pytest.mark.parametrize(("make", "line", "tables"), SHOWN)
def test_html(make, line, tables):
    tensor = make()
    line = line.replace("device host", f"device {tensor.device}")
    assert read(tensor._repr_html_())[:2] == (line, tables)
    if isinstance(tensor, tp.Variable):
        tensor.dispose()


def test_large_tensors_are_cut():
    _, [table], _ = read(tp.reshape(tp.arange(2000), (20, 100))._repr_html_())
    assert [len(row) for row in table] == [9] * 9
    assert table[0] == ["0", "1", "2", "3", "\u2026", "96", "97", "98", "99"]
    assert table[4] == ["\u2026"] * 9
    assert table[8][8] == "1999"
    _, [row], _ = read(tp.arange(10)._repr_html_())
    assert row == [["0", "1", "2", "3", "\u2026", "6", "7", "8", "9"]]
    _, [row], _ = read(tp.arange(9)._repr_html_())
    assert row == [list("012345678")]


def test_more_than_two_axes():
    _, tables, text = read(tp.reshape(tp.arange(24), (3, 2, 2, 2))._repr_html_())
    assert tables == [
        [[str(4 * at), str(4 * at + 1)], [str(4 * at + 2), str(4 * at + 3)]] for at in range(3)
    ]
    assert re.findall(r"\[\d, \d, :, :\]", text) == [
        "[0, 0, :, :]",
        "[0, 1, :, :]",
        "[1, 0, :, :]",
    ]
    assert text.endswith("\u2026 3 more")


def test_tensors_without_values():
    x = tp.zeros((2, 3))
    x.dispose()
    assert read(x._repr_html_())[2] == "Tensor shape (2, 3) dtype float32disposed"
    seen = []

    def look(x):
        seen.append((read(x._repr_html_())[2], repr(x)))
        return x + 1

    tp.compile(look)(tp.zeros((2,)))
    tp.vmap(look)(tp.zeros((2, 3)))
    tp.grad(lambda x: tp.sum(look(x)))(tp.zeros((2,)))
    assert [html == text for html, text in seen] == [True, True, False]
    assert seen[2][0].startswith("Tensor shape (2,) dtype float32 device cpu")


def test_a_tensor_that_cannot_be_read(monkeypatch):
    x = tp.zeros((2,))
    monkeypatch.setattr(type(tp.find_backend("cpu")), "to_host", lambda *_: 1 // 0)
    assert read(x._repr_html_())[2] == repr(x)
    assert "unreadable: integer division" in repr(x)
