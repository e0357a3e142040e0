"""The table of gradients: every kernel and input, its rule or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.core.support.complex_points import COMPLEX_POINTS
from tests.core.support.gradient_conventions import CONVENTIONS
from tests.core.support.gradient_points import POINTS, RULES, STRAIGHT_THROUGH

from tensorplug.contract import dtypes as dt
from tensorplug.plugins import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.contract.rule_entries import GradientEntry
    from tensorplug.contract.spec import KernelSpec

REAL, COMPLEX = (
    {(case.kernel, name) for case in points for name in case.wrt}
    for points in (POINTS, COMPLEX_POINTS)
)

HEAD = """# The gradient of every kernel

[Gradients](gradients.md) says how to ask for them and what
holds everywhere.

A **rule** is named by its module in `tensorplug.rules` and its function. It is made of ops,
and is differentiated by their rules again. Where there is **none**, the table says why: the path
ends there, and adds nothing.

**Tested** names the order up to which derivatives are compared with central differences, in
float64: of real numbers, and of complex ones where the kernel takes them. What the points of a
kernel must cover is asked for by `tests/core/rules/test_gradient_completeness.py`; that a rule
off by 1e-4 is found at them, or one that cannot itself be differentiated, by
`test_gradient_mutations.py`. Gradients that go straight through a rounding are not those of the
results; they are compared **by value**. The last column is the convention **where there is no
derivative**, or an infinite one; `test_gradients_at_kinks.py` checks it by value.

{counts}

| kernel | input | rule | tested | where there is no derivative |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the text of the page.

    Raises:
        LookupError: an op of the catalogue has an input without a rule and without a stop.

    """
    missing = without_entry()
    if missing:
        raise LookupError(f"no gradient rule and no stop for {', '.join(missing)}")
    specs = sorted(catalogue.catalogue(), key=lambda spec: spec.name.lstrip("_").lower())
    rows = [row for spec in specs if spec.input_names for row in _rows(spec)]
    return HEAD.format(counts=_counts(specs)) + "\n".join(rows) + "\n"


def without_entry() -> list[str]:
    """Return the inputs, as ``Kernel(input)``, that have neither a rule nor a stop."""
    return [
        f"{spec.name}({name})"
        for spec in catalogue.catalogue()
        for name in spec.input_names
        if (spec.name, name) not in RULES
    ]


def _counts(specs: list[KernelSpec]) -> str:
    entries = [RULES[spec.name, name] for spec in specs for name in spec.input_names]
    ruled = sum(entry.rule is not None for entry in entries)
    without = [spec.name for spec in specs if not spec.input_names]
    return (
        f"{len(specs)} kernels, {len(entries)} inputs: {ruled} with a rule, "
        f"{len(entries) - ruled} without.\nKernels without inputs: {', '.join(without)}."
    )


def _rows(spec: KernelSpec) -> Iterator[str]:
    for at, name in enumerate(spec.input_names):
        entry = RULES[spec.name, name]
        convention = CONVENTIONS.get(spec.name, "") if entry.rule else ""
        cells = (
            spec.name if at == 0 else "",
            f"`{name}`",
            _rule(entry),
            _tested(entry),
            convention,
        )
        yield f"| {' | '.join(cells)} |".replace("  ", " ")


def _rule(entry: GradientEntry) -> str:
    if entry.rule is None:
        return f"none: {entry.reason}"
    module = entry.rule.__module__
    family = module.rpartition(".")[2]
    name = entry.rule.__name__
    name = f"a formula of {family}" if name == "<lambda>" else f"{family}.{name}"
    link = f"[{name}](../core/src/{module.replace('.', '/')}.py)"
    return f"{link}, of complex numbers only" if not entry.rule_for(dt.float64) else link


def _tested(entry: GradientEntry) -> str:
    if entry.rule is None:
        return ""
    key = (entry.spec.name, entry.wrt)
    if key in STRAIGHT_THROUGH:
        return "by value"
    kinds = [what for what, keys in (("real", REAL), ("complex", COMPLEX)) if key in keys]
    return f"order 2, {' and '.join(kinds)}" if kinds else "nowhere"
