"""Writes the pages of the public functions and classes: ``docs/reference/api``.

``groups.toml`` says which modules of the code make up a page. A public name that no page or more
than one page has fails the build. What stands on a page comes from the docstrings. The kernels of
a function are those that it runs in its example; dtypes, shapes and gradients are those of their
specs.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import re
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import spec_page
from parameter_tables import meanings
from sphinx.errors import ExtensionError
from tests.core.support.public_functions import PUBLIC

import tensorplug as tp
import tensorplug.testing
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sphinx.application import Sphinx

_GROUPS: Final = Path(__file__).parents[1] / "reference" / "groups.toml"
_FAMILIES: Final = ("tensorplug.ops.", "tensorplug.library.")
_SHORT: Final = 3
"""Of up to so many kernels each is described; a longer list only says which have gradients."""


class Page(NamedTuple):
    """A page of the reference: its section, and its public names."""

    file: str
    title: str
    text: str
    names: list[str]


def pages() -> Iterator[tuple[str, list[Page]]]:
    """Yield the sections of the reference, each with its pages.

    Raises:
        ExtensionError: a public name is on no page, or on two.

    """
    homes: dict[str, str] = {}
    for section in tomllib.loads(_GROUPS.read_text("utf-8"))["section"]:
        made = []
        for page in section["page"]:
            names = [
                name
                for home in page["from"]
                for name in sorted(PUBLIC, key=str.lower)
                if _is_from(name, home)
            ]
            if section.get("sorted", False):
                names.sort(key=lambda name: _short(name).lower())
            for name in names:
                if name in homes:
                    raise ExtensionError(f"{name} is on {homes[name]} and on {page['file']}")
                homes[name] = page["file"]
            made.append(Page(page["file"], page["title"], page["text"], names))
        yield section["title"], made
    if lost := sorted(PUBLIC.keys() - homes.keys()):
        raise ExtensionError(f"groups.toml has no page for {', '.join(lost)}")


def _is_from(name: str, home: str) -> bool:
    """Return whether a page that asks for ``home`` has the public name.

    ``home`` is a namespace (``"tp.nn"``), or a module of the main namespace (``"ops.sorting"``).
    """
    namespace = _home(name)
    if home.startswith("tp."):
        return namespace == home
    return namespace == "tp" and PUBLIC[name].__module__ in (
        f"tensorplug.{home}",
        f"tensorplug_{home}",
    )


def _write(app: Sphinx) -> None:
    """Write the pages that have changed, and remove those that are no more."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    texts = {f"{page.file}.rst": _text(page) for _, made in pages() for page in made}
    texts["index.md"] = _index()
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _index() -> str:
    lines = [
        "# Functions and classes",
        "",
        "An entry states shapes, dtypes and errors, and shows an example that the tests run.",
        "**Kernels** are those that the function runs in its example, with their gradients.",
        "",
    ]
    for title, made in pages():
        lines += [f"## {title}", "", "| page | functions and classes |", "|---|---|"]
        for page in made:
            shown = ", ".join(f"{{py:obj}}`{_short(name)} <{_long(name)}>`" for name in page.names)
            lines.append(f"| [{page.title}]({page.file}.rst) | {shown} |")
        files = "\n".join(page.file for page in made)
        lines += ["", f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{files}\n```", ""]
    return "\n".join(lines)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _home(name: str) -> str:
    return name.rpartition(".")[0]


def _long(name: str) -> str:
    return f"tensorplug{name.removeprefix('tp')}"


def _text(page: Page) -> str:
    title = f"{page.title}\n{'=' * len(page.title)}\n"
    known = [name for name in page.names if name.startswith("tp.plugin.") and _elsewhere(name)]
    parts = [title, page.text, "", *(_entry(name) for name in page.names if name not in known)]
    if known:
        links = ", ".join(f":py:obj:`{_short(name)} <{_elsewhere(name)}>`" for name in known)
        parts.append(f"Also here, because plugins need them: {links}.\n")
    return "\n".join(parts)


def _elsewhere(name: str) -> str:
    """Return the first other public name of what ``tensorplug.plugin`` passes on, or ""."""
    if PUBLIC[name].__module__ == "tensorplug.errors":
        return f"tensorplug.errors.{_short(name)}"
    others = (other for other, value in PUBLIC.items() if value is PUBLIC[name] and other != name)
    return next(map(_long, others), "")


def _entry(name: str) -> str:
    if inspect.isclass(PUBLIC[name]):
        return f".. autoclass:: {_long(name)}\n   :members:\n"
    return f".. autofunction:: {_long(name)}\n"


def _complete(
    _app: Sphinx, what: str, name: str, value: Any, _options: Any, lines: list[str]
) -> None:
    """Add parameters and kernels to a function's text; let a method lead to its function."""
    if what == "function":
        lines[:] = [*_lacking(name, value, lines), "", *lines]
    home = next((name for name, public in PUBLIC.items() if public is value), "")
    if what == "method" and home:
        first = lines.index("") if "" in lines else len(lines)
        same = f"``x.{_short(home)}(...)`` is ``{home}(x, ...)``"
        lines[first:] = ["", f"{same}: see :py:obj:`{_long(home)}`.", ""]
    elif what == "function" and value.__module__.startswith(_FAMILIES):
        kernels = _kernels(name, value)
        if 0 < len(kernels) <= _SHORT:
            lines += ["", ":Kernels:", *(f"    * {_described(kernel)}" for kernel in kernels), ""]
        elif kernels:
            lines += ["", f":Kernels: {_listed(kernels)}", ""]


def _lacking(name: str, function: Any, lines: list[str]) -> Iterator[str]:
    """Yield fields of parameters that the docstring leaves to another function, or to a kernel."""
    there = _home(name).replace("tensorplug", "tp")
    homes = {_short(each): value for each, value in PUBLIC.items() if each.count(".") == 1}
    homes |= {_short(each): value for each, value in PUBLIC.items() if _home(each) == there}
    found = _attributes(name, function) | meanings(function, homes)
    stated = "\n".join(lines)
    for parameter in inspect.signature(function).parameters:
        if parameter in found and not re.search(rf":param [^:]*\b{parameter}\b", stated):
            yield f":param {parameter}: {found[parameter]}"


def _attributes(name: str, function: Any) -> dict[str, str]:
    """Return what a function's parameters mean that are attributes of the kernels that it runs."""
    if not function.__module__.startswith(_FAMILIES):
        return {}
    found: dict[str, str] = {}
    for kernel in _kernels(name, function)[:_SHORT]:
        spec = _specs()[kernel]
        for attribute in spec.attributes:
            text = re.sub(r"`([^`]+)`", r"``\1``", spec_page.meaning(spec, attribute))
            if text:
                found.setdefault(attribute.replace("keep_dims", "keepdims"), f"{text}.")
    return found


def _link(kernel: str) -> str:
    return f"`{kernel} <../../specs.html#{spec_page.anchor(kernel)}>`__"


def _listed(kernels: list[str]) -> str:
    """Return links to the specs of kernels, those with a gradient first."""
    with_gradient = [name for name in kernels if name in spec_page.differentiated()]
    without = [name for name in kernels if name not in with_gradient]
    both = (("with gradients", with_gradient), ("without", without))
    return "; ".join(f"{', '.join(map(_link, names))} ({how})" for how, names in both if names)


def _described(kernel: str) -> str:
    """Return a link to a kernel's spec, with the dtypes, shapes and gradients that it states."""
    spec = _specs()[kernel]
    names = spec_page.differentiated().get(kernel, [])
    ordered = [f"`{name}`" for name in spec.input_names if name in names]
    facts = [*spec_page.inputs(spec), *(f"output {text}" for text in spec_page.outputs(spec))]
    facts.append(f"gradient with respect to {' and '.join(ordered)}" if names else "no gradient")
    text = "; ".join(facts).replace("dtype: ", "").replace("inexact)", "integers become floats)")
    text = re.sub(r"(?<!\w)\*(?!\w+\*)", r"\*\ ", text)  # [*size, 3] holds no emphasis
    text = re.sub(r"`([^`]+)`", r"``\1``", text)
    return f"{_link(kernel)}: {text}."


@cache
def _specs() -> dict[str, Any]:
    return {spec.name: spec for family in spec_page.families() for spec in family.specs.values()}


@cache
def _kernels(name: str, function: Any) -> list[str]:
    """Return the kernels that a function runs in its example, in the order of their first call.

    Where the example calls the method alone, all kernels of the example are returned.
    """
    inside, everything = _traced(name, function)
    found = dict.fromkeys(inside or everything)
    return [kernel for kernel in found if kernel in _specs()]


def _traced(name: str, function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Run a function's example; return the kernels that its calls ran, and all of the example."""
    inside: list[str] = []

    def noted(*args: Any, **options: Any) -> Any:
        with tp.trace_dispatch(file=io.StringIO()) as calls:
            result = function(*args, **options)
        inside.extend(call.name for call in calls.calls if call.depth == 0)
        return result

    place, _, short = name.rpartition(".")
    module = importlib.import_module(place)
    runner = doctest.DocTestRunner(verbose=False)
    session = doctest.DocTestParser().get_doctest(
        inspect.getdoc(function) or "", {"tp": tp, "np": np}, name, None, None
    )
    with (
        tempfile.TemporaryDirectory() as folder,  # examples write files, and register kernels
        contextlib.chdir(folder),
        isolated_engine(),
        tp.trace_dispatch(file=io.StringIO()) as traced,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        setattr(module, short, noted)
        try:
            runner.run(session)
        finally:
            setattr(module, short, function)
    return inside, [call.name for call in traced.calls if call.depth == 0]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", _write)
    app.connect("autodoc-process-docstring", _complete)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
