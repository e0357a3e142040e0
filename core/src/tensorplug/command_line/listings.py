"""The results of the commands as data: lists of lines, each a mapping of texts and numbers."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import ArgumentError
from tensorplug.plugins import backends as control
from tensorplug.plugins import registration
from tensorplug.plugins.catalogue import catalogue
from tensorplug.plugins.discovery import backends, extensions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.introspection.explanation import Explanation

__all__ = ["explained", "installed", "kernels"]

Line = dict[str, Any]


def installed() -> list[Line]:
    """Return the installed backends and extensions, from metadata alone."""
    found = [("backend", backend) for backend in backends()]
    found += [("extension", extension) for extension in extensions()]
    return [
        {
            "kind": kind,
            "name": info.name,
            "distribution": info.distribution,
            "version": info.version,
            "state": info.state,
            "detail": info.detail,
        }
        for kind, info in found
    ]


def kernels(pattern: str, backend: str | None, dtype: str | None) -> list[Line]:
    """Return, for each matching kernel of the catalogue, how it runs on a backend.

    Raises:
        ArgumentError: no kernel matches.

    """
    specs = sorted(catalogue(), key=lambda spec: spec.name.lower())
    chosen = [spec for spec in specs if fnmatch.fnmatchcase(spec.name.lower(), pattern.lower())]
    if not chosen:
        raise ArgumentError(f"no kernel of the catalogue matches {pattern!r}")
    name = backend or control.get_backend()
    lines = []
    for spec in chosen:
        found = registration.explain(spec.name, backend=name, dtype=dtype)
        lines.append(
            {
                "kernel": spec.name,
                "inputs": list(spec.inputs),
                "outputs": list(spec.outputs),
                "how": found.how or "not possible",
                "owner": found.owner,
                "detail": found.reason,
            }
        )
    return lines


def explained(
    kernel: str, backend: str | None, inputs: Sequence[str], attributes: Sequence[str]
) -> Explanation:
    """Return the explanation of a kernel, or of its call with inputs of these types.

    Raises:
        ArgumentError: a type or an attribute cannot be read.

    """
    options = dict(map(_attribute, attributes))
    if options and not inputs:
        raise ArgumentError("to explain a call with attributes, pass the types of its inputs too")
    types = [_type(operand) for operand in inputs]
    name = backend or control.get_backend()
    return registration.explain(kernel, types or None, options, backend=name)


_TYPE = re.compile(r"(?P<dtype>[a-z]+[0-9]*)(?:\[(?P<shape>[0-9, ]*)\])?", re.ASCII)


def _type(text: str) -> TensorType | list[TensorType] | None:
    """Parse ``float32[2,3]``; types joined by ``+`` are a list, and ``-`` is an absent input."""
    if text == "-":
        return None
    if "+" in text:
        return [_one_type(part) for part in text.split("+")]
    return _one_type(text)


def _one_type(text: str) -> TensorType:
    match = _TYPE.fullmatch(text.strip())
    if match is None:
        raise ArgumentError(f"{text!r} is not a tensor type, such as float32[2,3]")
    sizes = (match["shape"] or "").replace(" ", "")
    shape = tuple(int(part) for part in sizes.split(",") if part)
    return TensorType(dt.of(match["dtype"]), shape)


def _attribute(text: str) -> tuple[str, Any]:
    """Parse ``name=value``, where the value is a Python literal or a word."""
    import ast  # rarely needed

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ArgumentError(f"{text!r} is not an attribute, such as axis=-1")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a word, as in pad=same
