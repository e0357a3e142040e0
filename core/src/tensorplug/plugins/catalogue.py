"""What the core itself brings: its kernel specs, their rules and decompositions."""

from __future__ import annotations

from tensorplug import batching as batching_families
from tensorplug import decompositions as decomposition_families
from tensorplug import gradients as gradient_families
from tensorplug import ops
from tensorplug import tangents as tangent_families
from tensorplug.contract.batching import BatchingTable
from tensorplug.contract.families import modules_of, tables_of
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable, GradientTable, TangentTable
from tensorplug.errors import RegistrationError


def catalogue() -> tuple[KernelSpec, ...]:
    """Return every kernel spec of the core, in the order of families and their lines.

    Raises:
        RegistrationError: when two specs have one name.

    """
    found: dict[str, tuple[KernelSpec, str]] = {}
    for module in modules_of(ops):
        for value in vars(module).values():
            if not isinstance(value, KernelSpec):
                continue
            known, where = found.setdefault(value.name, (value, module.__name__))
            if known is not value:  # an import of another family's spec is the same object
                raise RegistrationError(
                    f"two kernel specs are called {value.name!r}, in {where} and in "
                    f"{module.__name__}"
                )
    return tuple(spec for spec, _ in found.values())


def gradients() -> tuple[GradientTable, ...]:
    """Return the gradient table of every family."""
    return tables_of(gradient_families, GradientTable, "gradients")


def tangents() -> tuple[TangentTable, ...]:
    """Return the table of tangent rules of each family that has one."""
    return tables_of(tangent_families, TangentTable, "tangents")


def batchings() -> tuple[BatchingTable, ...]:
    """Return the table of batching rules of each family that has one."""
    return tables_of(batching_families, BatchingTable, "batching")


def decompositions() -> tuple[DecompositionTable, ...]:
    """Return the decomposition table of every family."""
    return tables_of(decomposition_families, DecompositionTable, "decompositions")
