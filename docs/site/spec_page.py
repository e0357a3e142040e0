"""The page of specs: for every kernel spec of the core, what a backend's kernel receives."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from spec_calls import calls, dtype_text, listed
from spec_edges import answer
from spec_questions import asking
from spec_texts import MEANINGS, MEANINGS_OF, RULES, SHAPES

from tensorplug import ops
from tensorplug.contract.rule_entries import GradientEntry
from tensorplug.plugin import REQUIRED, DType, KernelSpec, dtypes, modules_of
from tensorplug.plugins import catalogue
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

HEAD = """# The specs of all kernels

[The terms](terms.md) explain the words, and
[A backend in an afternoon](guides/backend_in_an_afternoon.md) shows how to write a kernel.

A kernel is registered for a spec: `@kernels.register(specs.CONV2D)`, with `specs` from
`tensorplug.plugin`. Its parameters are the spec's inputs, by name; then, keyword-only, any of its
attributes. Each spec has:

- **inputs**, with the dtypes that reach the kernel. An *optional* input may be `None`; a *list* is
  a list of tensors. *Promoted* inputs reach the kernel in their common dtype. Where an input is
  *inexact*, a caller's integers and booleans become float32.
- **attributes**, in the canonical form that a kernel receives. Where a caller leaves an attribute
  out, the default is brought to that form.
- **outputs**, with the rule for dtype and shape. The engine infers both before it runs a kernel;
  the keyword `out` passes them to the kernel. "That of `x`" is the dtype or shape of input `x`. A
  size that only the data tells is `?` in the example.
- **an example**: a call of the conformance suite, with the types and attributes that a kernel
  receives.
- **edges**, where it has any: what happens there, and a case of the suite that asks for it. An
  error is raised by the kernel. `tensorplug-conformance run --kernels NAME` runs all cases of a
  kernel.

Every backend has the **primitives**. Where a backend lacks another kernel, the engine uses its
**decomposition** into other kernels, or runs it **on the host**, in NumPy. **Gradients** names the
inputs that have a [gradient rule](gradients_table.md).

The dtypes are:

{groups}

Below, *positions* are those of the window along every spatial axis. For canonical attributes,
`convolution_windows`, `pooling_windows`, `dilation_windows` and `dilated_pooling_windows` of
`tensorplug.plugin` return them.

{count} specs in {families} families:

{contents}
"""

GROUPS = {
    "stored": dtypes.STORED,
    "any": dtypes.ANY,
    "fixed": dtypes.FIXED,
    "numeric": dtypes.NUMERIC,
    "real": dtypes.REAL,
    "inexact": dtypes.INEXACT,
    "integer": dtypes.INTEGER,
    "floating": dtypes.FLOATING,
    "signed": dtypes.SIGNED,
    "unsigned": dtypes.UNSIGNED,
    "complex": dtypes.COMPLEX,
    "storage": dtypes.STORAGE,
}


@dataclass(frozen=True)
class Family:
    """A module of specs: its name below ``ops``, what it is, and its specs by constant."""

    name: str
    summary: str
    specs: dict[str, KernelSpec]


def page() -> str:
    """Return the text of the page."""
    found = list(families())
    head = HEAD.format(
        groups="\n".join(
            f"- *{name}*: {_grouped(group, without=name)}" for name, group in GROUPS.items()
        ),
        count=sum(len(family.specs) for family in found),
        families=len(found),
        contents="\n".join(_contents(family) for family in found),
    )
    sections = [head]
    for family in found:
        sections.append(f"## {family.name}\n\n{family.summary}\n")
        sections += [section(constant, spec) for constant, spec in family.specs.items()]
    return "\n".join(sections)


def families() -> Iterator[Family]:
    """Yield the families that define specs, in the order of their modules."""
    for module in modules_of(ops):
        specs = {
            name: value
            for name in _assigned(module)
            if isinstance(value := getattr(module, name, None), KernelSpec)
        }
        if specs:
            name = module.__name__.removeprefix(f"{ops.__name__}.")
            yield Family(name, (inspect.getdoc(module) or "").split("\n\n")[0], specs)


def _assigned(module: ModuleType) -> list[str]:
    """Return the names that a module's own statements assign, not those it imports."""
    return [
        target.id
        for statement in ast.parse(inspect.getsource(module)).body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        for target in ast.walk(node)
        if isinstance(target, ast.Name)
    ]


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    return heading.lower().replace(".", "")


def _contents(family: Family) -> str:
    kernels = ", ".join(f"[{spec.name}](#{anchor(spec.name)})" for spec in family.specs.values())
    return f"- [{family.name}](#{anchor(family.name)}): {kernels}"


def section(constant: str, spec: KernelSpec) -> str:
    """Return the section of one spec."""
    lines = [f"### {spec.name}", "", f"`specs.{constant}`: {'; '.join(_traits(spec))}.", ""]
    lines += [f"- {line}" for line in inputs(spec)]
    lines += [f"- output {line}" for line in outputs(spec)]
    lines += [f"- example: `{_example(spec)}`"]
    lines += [f"- {line}" for line in edges(spec)]
    lines.append("")
    if spec.attributes:
        lines += ["| attribute | a kernel receives | default | meaning |", "|---|---|---|---|"]
        lines += [_attribute(spec, name) for name in spec.attributes]
        lines.append("")
    return "\n".join(lines)


# Facts ------------------------------------------------------------------------------------


@cache
def _decompositions() -> dict[str, bool]:
    """Return for every kernel with a decomposition whether it runs on the host."""
    return {
        entry.spec.name: entry.on_host for table in catalogue.decompositions() for entry in table
    }


@cache
def differentiated() -> dict[str, list[str]]:
    """Return the inputs that have a gradient rule, by kernel."""
    found: dict[str, list[str]] = {}
    for table in catalogue.rules():
        for entry in table:
            if isinstance(entry, GradientEntry) and entry.rule is not None:
                found.setdefault(entry.spec.name, []).append(entry.wrt)
    return found


def _traits(spec: KernelSpec) -> Iterator[str]:
    if spec.name in PRIMITIVES:
        yield "primitive"
    elif spec.name in _decompositions():
        yield "runs on the host" if _decompositions()[spec.name] else "has a decomposition"
    names = differentiated().get(spec.name, [])
    ordered = [f"`{name}`" for name in spec.input_names if name in names]
    yield f"gradients: {', '.join(ordered)}" if ordered else "no gradients"


def _grouped(group: frozenset[DType], without: str = "") -> str:
    """Return dtypes by the names of the groups they make up, the largest first."""
    names, rest = [], group
    for name, members in GROUPS.items():
        if name != without and members <= rest:
            names.append(f"*{name}*")
            rest -= members
    return ", ".join([*names, listed(rest)] if rest else names)


def inputs(spec: KernelSpec) -> Iterator[str]:
    """Yield lines for inputs; inputs with the same text share one."""
    if not spec.declared:
        yield "no inputs"
    alike: dict[str, list[str]] = {}
    for declared in spec.declared:
        notes = ["optional"] * declared.optional + ["list"] * declared.variadic
        if declared.name in spec.promote:
            alone = len(spec.promote) == 1 and not declared.variadic
            notes += ["promoted"] * (not alone) + ["inexact"] * spec.inexact
        about = f" ({', '.join(notes)})" if notes else ""
        line = f"{about}: {_grouped(_received(spec, declared.name))}"
        alike.setdefault(line, []).append(f"`{declared.name}`")
    for line, names in alike.items():
        yield f"input{'s' if len(names) > 1 else ''} {', '.join(names)}{line}"


def _attribute(spec: KernelSpec, name: str) -> str:
    attribute = spec.attributes[name]
    default = "required" if attribute.default is REQUIRED else f"`{_shown(attribute.default)}`"
    return f"| `{name}` | {attribute.form} | {default} | {meaning(spec, name)} |".replace(
        "  ", " "
    )


def _received(spec: KernelSpec, name: str) -> frozenset[DType]:
    """Return the dtypes in which an input reaches a kernel."""
    accepted = spec.accepted(name)
    return accepted & dtypes.INEXACT if spec.inexact and name in spec.promote else accepted


def meaning(spec: KernelSpec, name: str) -> str:
    """Return what an attribute means; empty if unknown."""
    return MEANINGS_OF.get((spec.name, name)) or MEANINGS.get(name, "")


def outputs(spec: KernelSpec) -> Iterator[str]:
    """Yield for each output its name, and how its dtype and shape follow."""
    texts = shape_texts(spec)
    for at, name in enumerate(spec.output_names):
        several = " (list)" if spec.outputs[0].endswith("[]") else ""
        shape = texts[at] if at < len(texts) else ""
        yield f"`{name}`{several}: dtype: {dtype_text(spec, at)}; shape: {shape}"


def shape_texts(spec: KernelSpec) -> tuple[str, ...]:
    """Return how the shape of each output follows; empty if unknown."""
    if spec.infer.__module__ == "tensorplug.contract.inference":
        return (RULES[spec.infer.__qualname__.partition(".")[0]],)
    return SHAPES.get(spec.name, ())


def edges(spec: KernelSpec) -> Iterator[str]:
    """Yield what happens at each edge, with the case that asks for it."""
    for question, asked in asking(spec).items():
        said = answer(question, spec.name)
        if said:
            yield f"edge, {question}: {said} (case `{asked.case.id}` in {asked.dtype})"


def _example(spec: KernelSpec) -> str:
    call = calls(spec)[0]
    operands = [
        f"{name}={_shown_type(type_)}"
        for name, type_ in zip(spec.input_names, call.types, strict=True)
    ]
    attributes = [f"{name}={_shown(value)}" for name, value in call.attributes.items()]
    outputs = ", ".join(str(output) for output in call.outputs)
    return f"{spec.name}({', '.join(operands + attributes)}) -> {outputs}"


def _shown_type(type_: Any) -> str:
    if isinstance(type_, list):
        return f"[{', '.join(map(str, type_))}]"
    return str(type_)


def _shown(value: Any) -> str:
    return value.name if isinstance(value, DType) else repr(value)
