"""The results of the commands as data; ``output.schema.json`` describes them."""

from __future__ import annotations

import difflib
import fnmatch
import platform
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import REQUIRED, TensorType
from tensorplug.engine.current import current_engine
from tensorplug.errors import ArgumentError, TensorplugError
from tensorplug.introspection import public_functions
from tensorplug.plugins import backends as control
from tensorplug.plugins import kernel_calls
from tensorplug.plugins.discovery import backends, extensions
from tensorplug.plugins.metadata import core_version
from tensorplug.system.foreign_text import cause_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tensorplug.contract.backend import DeviceInfo
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.introspection.explanation import Explanation


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


def versions() -> Line:
    """Return the versions of the core, of what it runs on, and of the installed plugins."""
    return {
        "tensorplug": core_version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "plugins": installed(),
    }


def devices(backend: str | None) -> list[Line]:
    """Return the devices of one backend, or of all that are installed and not refused by metadata.

    This loads plugins. A backend that fails has one line, whose state is "failed".

    Raises:
        BackendNotInstalledError: there is no such ``backend``.

    """
    if backend is not None:
        known = [info.name for info in backends()]
        if backend not in known:
            control.devices(backend)  # raises what asking for it raises
        return _devices_of(backend)
    usable = [info.name for info in backends() if info.state in ("available", "loaded")]
    return [line for name in usable for line in _devices_of(name)]


def _devices_of(backend: str) -> list[Line]:
    try:
        found = control.devices(backend)
    except TensorplugError as error:
        return [_device(backend, backend, None, "failed", cause_of(error))]
    return [
        _device(backend, name, info, "refused" if info.refused else "ok", info.refused)
        for name, info in found.items()
    ]


def _device(backend: str, name: str, info: DeviceInfo | None, state: str, detail: str) -> Line:
    dtypes = None if info is None or info.dtypes is None else sorted(map(str, info.dtypes))
    return {
        "backend": backend,
        "device": name,
        "state": state,
        "hardware": info.hardware if info else "",
        "driver": info.driver if info else "",
        "memory": info.memory if info else None,
        "dtypes": dtypes,
        "detail": detail,
    }


def kernels(
    patterns: Sequence[str],
    backend: str | None,
    dtype: str | None,
    how: Collection[str] | None = None,
) -> list[Line]:
    """Return, for each matching kernel, how it runs on a backend; ``how`` leaves only some.

    Raises:
        ArgumentError: a pattern matches no kernel.

    """
    chosen = None if dtype is None else dt.of(dtype, "kernels")
    name = backend or control.get_backend()
    lines = []
    for spec in _matching(current_engine().registry.state.specs.values(), patterns):
        found = kernel_calls.explain(spec.name, backend=name, dtype=chosen)
        if how and (found.how or "not-possible") not in how:
            continue
        lines.append(
            {
                "kernel": spec.name,
                "inputs": list(spec.inputs),
                "outputs": list(spec.outputs),
                "how": found.how,
                "owner": found.owner,
                "detail": found.reason,
            }
        )
    return lines


def _matching(specs: Iterable[KernelSpec], patterns: Sequence[str]) -> list[KernelSpec]:
    """Return the specs whose names match one of the patterns, by name."""
    by_name = {spec.name: spec for spec in specs}
    chosen: dict[str, KernelSpec] = {}
    for pattern in patterns:
        glob = re.compile(fnmatch.translate(pattern), re.IGNORECASE)
        found = {name: spec for name, spec in by_name.items() if glob.match(name)}
        if not found:
            lower = {name.lower(): name for name in by_name}
            near = difflib.get_close_matches(pattern.lower(), lower, n=1)
            hint = f"; did you mean {lower[near[0]]}?" if near else ""
            raise ArgumentError(f"no kernel matches {pattern!r}{hint}")
        chosen |= found
    return [chosen[name] for name in sorted(chosen, key=str.lower)]


def explained(
    kernel: str,
    backend: str | None,
    inputs: Sequence[str],
    attributes: Sequence[str],
    *,
    source: bool = False,
) -> Explanation:
    """Return the explanation of a kernel or function, or of its call with inputs of these types.

    Raises:
        ArgumentError: a type or an attribute cannot be read, or an attribute is missing.

    """
    options = dict(map(_attribute, attributes))
    spec = current_engine().registry.state.specs.get(kernel)
    if spec is not None and options and not inputs:
        raise ArgumentError("to explain a call with attributes, pass the types of its inputs too")
    if spec is not None and inputs:
        _check_complete(spec, options)
    types = [_type(operand) for operand in inputs]
    name = backend or control.get_backend()
    return kernel_calls.explain(kernel, types or None, options, backend=name, source=source)


def _check_complete(spec: KernelSpec, options: Collection[str]) -> None:
    missing = [
        f"--set {name}=VALUE"
        for name, attribute in spec.attributes.items()
        if attribute.default is REQUIRED and name not in options
    ]
    if missing:
        raise ArgumentError(f"{spec.name}: attributes are missing: {', '.join(missing)}")


def explanation(explained: Explanation) -> Line:
    """Return an explanation as data."""
    return {
        "kernel": explained.kernel,
        "call": explained.call,
        "backend": explained.backend,
        "how": explained.how,
        "owner": explained.owner,
        "steps": [{"what": what, "outcome": outcome} for what, outcome in explained.steps],
        "reason": explained.reason,
        "sources": list(explained.sources),
        "vmap": explained.vmap,
        "inner": [explanation(call) for call in explained.inner],
    }


def words(kind: str) -> list[str]:
    """Return the names of a kind, that a shell may complete."""
    if kind == "backends":
        return [info.name for info in backends()]
    if kind in ("explained", "kernels"):
        functions = public_functions.names() if kind == "explained" else []
        return sorted([*current_engine().registry.state.specs, *functions])
    return sorted(map(str, dt.STORED))


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
