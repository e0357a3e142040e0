"""A table's entry replaces another plugin's only if it says so, and leaves when it is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tensorplug.contract import inference
from tensorplug.contract.owner import Owner
from tensorplug.contract.rules import GradientTable
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable, KernelTable
from tensorplug.engine.registry import Registry
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

SPEC = KernelSpec("Echo", ("x",), inference.same)
FIRST, SECOND = Owner("first", "1.0"), Owner("second", "2.0")


def kernel(x: Any) -> Any:
    return x


def rule(dy: Any) -> Any:
    return dy


def registered(**override: bool) -> KernelTable:
    table = KernelTable()
    table.register(SPEC, **override)(kernel)
    return table


def prepared(**override: bool) -> KernelTable:
    table = KernelTable()
    table.prepare(SPEC, **override)(kernel)
    return table


def gradient(**override: bool) -> GradientTable:
    table = GradientTable()
    table.wrt(SPEC, "x", **override)(rule)
    return table


def decomposed(**override: bool) -> DecompositionTable:
    table = DecompositionTable()
    table.of(SPEC, **override)(kernel)
    return table


def as_kernels(table: Any) -> dict[str, Any]:
    return {"kernels": [("acme", entry) for entry in table]}


KINDS: dict[str, tuple[Callable[..., Any], Callable[[Any], dict[str, Any]], Any]] = {
    "register": (registered, as_kernels, lambda state: state.kernel("Echo", "acme")),
    "prepare": (prepared, as_kernels, lambda state: state.kernel("Echo", "acme")),
    "gradient": (
        gradient,
        lambda table: {"rules": list(table)},
        lambda state: state.gradient("Echo", "x"),
    ),
    "decomposition": (
        decomposed,
        lambda table: {"decompositions": list(table)},
        lambda state: state.decomposition("Echo"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_without_saying_so_it_is_a_duplicate(kind: str) -> None:
    make, arguments, read = KINDS[kind]
    registry = Registry([SPEC])
    registry.add(FIRST, **arguments(make()))
    with pytest.raises(RegistrationError, match=r"first 1\.0; second 2\.0 must set override"):
        registry.add(SECOND, **arguments(make()))
    assert read(registry.state).owner is FIRST


@pytest.mark.parametrize("kind", KINDS)
def test_saying_so_replaces_until_it_is_removed(kind: str) -> None:
    make, arguments, read = KINDS[kind]
    registry = Registry([SPEC])
    registry.add(FIRST, **arguments(make()))
    handle = registry.add(SECOND, **arguments(make(override=True)))
    assert read(registry.state).owner is SECOND
    handle.remove()
    assert read(registry.state).owner is FIRST
