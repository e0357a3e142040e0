r"""Strings: splitting, n-grams, regular expressions, buckets, in ``tensorplug.strings``.

Strings stay in host memory if a device does not support them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import REQUIRED, UNKNOWN, Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.host_functions.strings import compiled, template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TextLike

__all__ = ["static_regex_replace", "string_n_grams", "string_split", "string_to_hash_bucket_fast"]

TEXT: Final = frozenset({dt.string})
_MOST: Final = 1 << 31  # number of buckets; their indices are int32


class NGrams(NamedTuple):
    """The result of ``string_n_grams``."""

    n_grams: Tensor
    n_grams_splits: Tensor


class SplitStrings(NamedTuple):
    """The result of ``string_split``."""

    indices: Tensor
    values: Tensor
    shape: Tensor


def _read_text(value: Any, _types: InputTypes) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"must be a string, got {quoted(value)}")
    return value


def _read_pattern(value: Any, types: InputTypes) -> str:
    compiled(_read_text(value, types))
    return str(value)


def _read_rewrite(value: Any, known: InputTypes) -> str:
    template(compiled(known["pattern"]), _read_text(value, known))
    return str(value)


def _read_widths(value: Any, _types: InputTypes) -> tuple[int, ...]:
    widths = shapes.as_ints(value)
    if not widths or min(widths) < 1:
        raise ArgumentError(f"must be one or more positive integers, got {quoted(value)}")
    return widths


def _read_buckets(value: Any, _types: InputTypes) -> int:
    number = shapes.index(value)
    if not 1 <= number <= _MOST:
        raise ArgumentError(f"must be from 1 to 2**31, got {number}")
    return number


def _infer_string_n_grams(
    data: TensorType, data_splits: TensorType
) -> tuple[TensorType, TensorType]:
    if data.rank != 1 or data_splits.rank != 1:
        raise ShapeError("data and data_splits must have rank 1")
    return TensorType(dt.string, (UNKNOWN,)), data_splits


STRING_N_GRAMS = KernelSpec(
    "StringNGrams",
    ("data", "data_splits"),
    _infer_string_n_grams,
    attributes={
        "separator": Attribute(_read_text, form="str"),
        "n_gram_widths": Attribute(_read_widths, form="tuple of one or more ints >= 1"),
        "left_pad": Attribute(_read_text, form="str"),
        "right_pad": Attribute(_read_text, form="str"),
        "pad_width": attributes.integer(REQUIRED, at_least=-1),
        "preserve_short_sequences": attributes.flag(),
    },
    outputs=("n_grams", "n_grams_splits"),
    accepts={"data": TEXT, "data_splits": dt.INTEGER},
)


def _infer_string_split(
    input: TensorType,
    delimiter: TensorType,
) -> tuple[TensorType, TensorType, TensorType]:
    if input.rank != 1 or delimiter.rank:
        raise ShapeError("input must have rank 1, and delimiter rank 0")
    return (
        TensorType(dt.int32, (UNKNOWN, 2)),
        TensorType(dt.string, (UNKNOWN,)),
        TensorType(dt.int32, (2,)),
    )


STRING_SPLIT = KernelSpec(
    "StringSplit",
    ("input", "delimiter"),
    _infer_string_split,
    attributes={"skip_empty": attributes.flag(default=True)},
    outputs=("indices", "values", "shape"),
    accepts=TEXT,
)


def _infer_string_to_hash_bucket_fast(input: TensorType) -> TensorType:
    return TensorType(dt.int32, input.shape)


STRING_TO_HASH_BUCKET_FAST = KernelSpec(
    "StringToHashBucketFast",
    ("input",),
    _infer_string_to_hash_bucket_fast,
    attributes={"num_buckets": Attribute(_read_buckets, form="int in [1, 2**31]")},
    accepts=TEXT,
    elementwise=True,
)


STATIC_REGEX_REPLACE = KernelSpec(
    "StaticRegexReplace",
    ("x",),
    lambda x: x,
    attributes={
        "pattern": Attribute(_read_pattern, form="str, a regular expression"),
        "rewrite": Attribute(_read_rewrite, form="str, in which \\1 to \\9 stand for groups"),
        "replace_global": attributes.flag(default=True),
    },
    accepts=TEXT,
    elementwise=True,
)


def string_n_grams(
    data: TextLike,
    data_splits: ArrayLike,
    separator: str,
    n_gram_widths: int | Sequence[int],
    left_pad: str = "",
    right_pad: str = "",
    pad_width: int = 0,
    preserve_short_sequences: bool = False,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
) -> NGrams:
    """Return the n-grams of rows of words: each run of n words, joined.

    Args:
        data: strings of rank 1, the words of all rows.
        data_splits: integers of rank 1 that ascend from 0 to the number of words: the words
            ``data_splits[i]`` to ``data_splits[i + 1] - 1`` are row i.
        separator: joins the words of an n-gram.
        n_gram_widths: a list of widths n; a row has its n-grams of the first width first.
        left_pad: a word to put before each row.
        right_pad: a word to put after each row.
        pad_width: number of these words, at most n - 1; -1 for n - 1.
        preserve_short_sequences: whether a nonempty row that is too short for every width
            gives one n-gram of all its words and paddings.

    Returns:
        ``n_grams``, strings of rank 1, and ``n_grams_splits``, of the shape and dtype of
        ``data_splits``, which split them into rows. Paddings without words give no n-grams.

    Raises:
        ShapeError: another rank.
        ArgumentError: the splits do not ascend from 0 to the number of words, a width is below 1,
            or ``pad_width`` below -1.

    (TensorFlow's StringNGrams.)

    Examples:
        >>> found = tp.strings.string_n_grams(["the", "red", "fox", "hi"], [0, 3, 4], " ", [2])
        >>> found.n_grams  # the second row is too short
        Tensor(['the red', 'red fox'], dtype=string, device='cpu')
        >>> found.n_grams_splits
        Tensor([0, 2, 2], dtype=int32, device='cpu')
        >>> tp.strings.string_n_grams(["hi"], [0, 1], " ", 2, "<", ">", -1).n_grams
        Tensor(['< hi', 'hi >'], dtype=string, device='cpu')

    """
    parts = dispatch_multiple(
        STRING_N_GRAMS,
        data,
        data_splits,
        separator=separator,
        n_gram_widths=n_gram_widths,
        left_pad=left_pad,
        right_pad=right_pad,
        pad_width=pad_width,
        preserve_short_sequences=preserve_short_sequences,
    )
    return NGrams(*parts)


def string_split(
    input: TextLike,
    delimiter: TextLike,
    skip_empty: bool = True,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
) -> SplitStrings:
    """Return the parts of strings as a sparse table with one row per string.

    Args:
        input: strings of rank 1.
        delimiter: a string. Each of its characters delimits. If it is empty, every character
            is a part.
        skip_empty: whether to omit empty parts. An empty string has no parts.

    Returns:
        ``indices`` (int32 ``[parts, 2]``), each part's string and place within it; ``values``,
        the parts; ``shape`` (int32 ``[2]``), the number of strings and the largest number of
        parts.

    Raises:
        ShapeError: another rank.
        DTypeError: an input does not hold strings.

    (TensorFlow's StringSplit, with characters instead of bytes.)

    Examples:
        >>> found = tp.strings.string_split(["a b", "c  d e"], " ")
        >>> found.values
        Tensor(['a', 'b', 'c', 'd', 'e'], dtype=string, device='cpu')
        >>> found.indices
        Tensor([[0, 0],
                [0, 1],
                [1, 0],
                [1, 1],
                [1, 2]], dtype=int32, device='cpu')
        >>> found.shape
        Tensor([2, 3], dtype=int32, device='cpu')

    """
    return SplitStrings(*dispatch_multiple(STRING_SPLIT, input, delimiter, skip_empty=skip_empty))


def string_to_hash_bucket_fast(input: TextLike, num_buckets: int) -> Tensor:
    """Return a hash from 0 to ``num_buckets - 1`` for each string.

    It is the FarmHash fingerprint of the string's UTF-8 bytes modulo ``num_buckets``, as in
    TensorFlow. It is not cryptographic: collisions are easy to find.

    Args:
        input: strings of any shape.
        num_buckets: from 1 to 2**31.

    Returns:
        int32, of the shape of ``input``.

    Raises:
        ArgumentError: ``num_buckets`` is out of range.
        DTypeError: an input does not hold strings.

    (TensorFlow's StringToHashBucketFast, with TensorFlow.js's dtype.)

    Examples:
        >>> tp.strings.string_to_hash_bucket_fast(["apple", "pear", "apple"], 10)
        Tensor([1, 8, 1], dtype=int32, device='cpu')

    """
    return dispatch(STRING_TO_HASH_BUCKET_FAST, input, num_buckets=num_buckets)


def static_regex_replace(
    input: TextLike,
    pattern: str,
    rewrite: str,
    replace_global: bool = True,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
) -> Tensor:
    r"""Return strings with matches of a regular expression replaced.

    Args:
        input: strings of any shape.
        pattern: in the syntax of Python's ``re``, which differs from TensorFlow's RE2: it lacks
            POSIX classes such as ``[:alpha:]``, ``\p`` and ``\C``, and has backreferences and
            lookarounds. As in RE2, ``\d``, ``\s``, ``\w`` and ``\b`` consider only ASCII. ``$``
            also matches before a newline at the end; ``\Z`` does not.
        rewrite: the replacement, with ``\1`` to ``\9`` for groups of the pattern, ``\0`` for
            the whole match and ``\\`` for a backslash. A group without a match is empty.
        replace_global: whether to replace every match or only the first.

    Returns:
        Strings of the shape of ``input``.

    Raises:
        ArgumentError: ``pattern`` is not a regular expression; or ``rewrite`` names a group that
            it lacks, or has another escape.
        DTypeError: an input does not hold strings.

    (TensorFlow's StaticRegexReplace.)

    Examples:
        >>> tp.strings.static_regex_replace(["a1b22", "c"], r"\d+", "#")
        Tensor(['a#b#', 'c'], dtype=string, device='cpu')
        >>> tp.strings.static_regex_replace("key=value", r"(\w+)=(\w+)", r"\2=\1")
        Tensor('value=key', dtype=string, device='cpu')
        >>> tp.strings.static_regex_replace("aaa", "a", "b", replace_global=False)
        Tensor('baa', dtype=string, device='cpu')

    """
    return dispatch(
        STATIC_REGEX_REPLACE,
        input,
        pattern=pattern,
        rewrite=rewrite,
        replace_global=replace_global,
    )
