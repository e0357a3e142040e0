"""Operators on text: what ONNX's node tests do not ask."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug_onnx
from tensorplug_onnx import NodeError, UnsupportedError
from tensorplug_onnx.operators.patterns import to_python

TEXT = TensorProto.STRING


def run(op_type, x, outputs=("y",), kind=TEXT, opset=21, **attributes):
    node = helper.make_node(op_type, ["x"], list(outputs), **attributes)
    graph = helper.make_graph(
        [node], "graph", [helper.make_tensor_value_info("x", kind, np.shape(x))],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    found = tensorplug_onnx.load(made)(np.array(x))
    return [found[name].numpy() for name in outputs]


# Patterns of RE2, texts that match, texts that do not.
PATTERNS = {
    r"[[:alpha:]_]+": (["ab_", "Z"], ["é", "a1", ""]),
    r"[^[:digit:]]": (["a", "é"], ["7"]),
    r"[]a]+": (["]a]"], ["[", "b"]),
    r"[\w.-]+": (["a.b-c"], ["a b", "é"]),
    r"[\W]": ([" ", "é"], ["a", "_"]),
    r"[\S]": (["a", "\v"], [" ", "\n"]),
    r"\d+": (["12"], ["١٢"]),  # digits of Arabic, which RE2 does not take for \d
    r"\s": ([" ", "\t"], ["\v", "\u00a0"]),
    r"a$": (["a"], ["a\n"]),
    r"a\z": (["a"], ["a\n"]),
    r"\Qa.b\E+": (["a.b", "a.bb"], ["axb"]),
    r"\x{e9}|\x41": (["é", "A"], ["e"]),
    r"(?i)Ä": (["ä"], ["a"]),
    r"(?<year>\d{4})-(?P<month>\d\d)": (["2024-05"], ["2024"]),
    r"a.c": (["abc"], ["a\nc"]),
    r"(?s:a.c)": (["a\nc"], ["ac"]),
    r"(|a)*?b{2,3}": (["bb", "abbb"], ["b"]),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_of_re2(pattern):
    yes, no = PATTERNS[pattern]
    (found,) = run("RegexFullMatch", [*yes, *no], pattern=pattern)
    assert found.dtype == np.bool
    assert found.tolist() == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", "references"), (r"(?=a)a", "RE2"), (r"(?<!b)a", "RE2"), (r"a++", "RE2"),
        (r"(?#note)a", "RE2"), (r"(?P=name)", "RE2"), (r"\Z", "RE2"), (r"[a", "no end"),
        (r"(a", "pattern"), (r"a{3,2}", "pattern"),
    ],
)  # fmt: skip
def test_what_re2_does_not_have(pattern, words):
    with pytest.raises(NodeError, match=words):
        run("RegexFullMatch", ["a"], pattern=pattern)


@pytest.mark.parametrize("pattern", [r"\pL", r"\C", r"(?U)a*", r"[[:^alpha:]]"])
def test_what_python_does_not_have(pattern):
    with pytest.raises(UnsupportedError, match="not supported"):
        run("RegexFullMatch", ["a"], pattern=pattern)


def test_translated_patterns_are_python_s():
    for pattern in PATTERNS:
        assert re.compile(to_python(pattern))


SPLITS = [
    ("a b  c ", {}, ["a", "b", "c"]),
    (" a b  c ", {"maxsplit": 1}, ["a", "b  c"]),
    ("", {}, []),
    ("", {"delimiter": ","}, [""]),
    ("a,b,,c", {"delimiter": ",", "maxsplit": 2}, ["a", "b", ",c"]),
    ("a, b, ", {"delimiter": ", "}, ["a", "b", ""]),
]


@pytest.mark.parametrize(("text", "attributes", "expected"), SPLITS)
def test_split(text, attributes, expected):
    parts, counts = run("StringSplit", [[text]], ("y", "n"), **attributes)
    assert parts.shape == (1, 1, len(expected))
    assert parts.ravel().tolist() == expected
    assert (counts.dtype, counts.tolist()) == (np.int64, [[len(expected)]])


NORMALIZED = [
    (["Ab", "the", "The"], {"stopwords": ["the"]}, ["Ab"]),
    (["Ab", "the", "The"], {"stopwords": ["the"], "is_case_sensitive": 1}, ["Ab", "The"]),
    ([["ß", "é"]], {"case_change_action": "UPPER"}, [["SS", "É"]]),
    ([["a", "b"]], {"stopwords": ["a", "b"]}, [[""]]),
    ([["a", "", "a"]], {"stopwords": ["b"]}, [["a", "", "a"]]),
]


@pytest.mark.parametrize(("x", "attributes", "expected"), NORMALIZED)
def test_normalizer(x, attributes, expected):
    (found,) = run("StringNormalizer", x, **attributes)
    assert found.tolist() == expected


def test_normalizer_errors():
    with pytest.raises(NodeError, match=r"\[2, 1\]"):
        run("StringNormalizer", [["a"], ["b"]])
    with pytest.raises(UnsupportedError, match="tr_TR"):
        run("StringNormalizer", ["I"], case_change_action="LOWER", locale="tr_TR")


GRAMS = {
    "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "mode": "TF",
    "ngram_counts": [0, 2], "ngram_indexes": [2, 0, 1],  # of "a", "b", "a b"
}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "weights", "factor"),
    [
        ("TF", [2.0, 3.0, 5.0], [1, 1, 1]),
        ("TFIDF", [2.0, 3.0, 5.0], [2, 3, 5]),
        ("TFIDF", [], [1, 1, 1]),
    ],
)
@pytest.mark.parametrize("numbers", [False, True])
def test_tf_idf(mode, weights, factor, numbers):
    attributes = {**GRAMS, "mode": mode, **({"weights": weights} if weights else {})}
    words = ["a", "x", "b", "b", "a"]
    counts = np.array([2, 1, 2], np.float32)  # b; a, a word, b; a
    if numbers:
        x = np.array(["axb".index(word) for word in words])
        (found,) = run(
            "TfIdfVectorizer", x, kind=TensorProto.INT64, pool_int64s=[0, 2, 0, 2], **attributes
        )
    else:
        (found,) = run("TfIdfVectorizer", words, pool_strings=["a", "b", "a", "b"], **attributes)
    assert (found.dtype, found.shape) == (np.float32, (3,))
    np.testing.assert_array_equal(found, counts * factor)


def test_idf_counts_each_n_gram_once():
    attributes = {**GRAMS, "mode": "IDF", "weights": [2.0, 3.0, 5.0]}
    x = [["a", "x", "b"], ["x", "x", "x"]]
    (found,) = run("TfIdfVectorizer", x, pool_strings=["a", "b", "a", "b"], **attributes)
    np.testing.assert_array_equal(found, [[2, 3, 5], [0, 0, 0]])
