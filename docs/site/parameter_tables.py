"""A table of parameters in each entry of the reference: name, type, default, meaning.

Names, types and defaults come from the signature, which keeps names and defaults. Meanings come
from the section ``Args`` of the docstring, or from a sentence such as "``x``: numbers; ``axis``:
along which to add them."; where there is none, from those of the function to which the docstring
sends the reader, or from the attribute of the kernel that the function runs. Where the text above
the table says it all, the column stays empty, or away.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.napoleon import GoogleDocstring

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sphinx.application import Sphinx

_FIELD: Final = re.compile(r"^:param ([^:]+):\s*(.*)$")
_SECTION: Final = re.compile(r"^(?:Args|Returns|Raises|Yields|Source|Examples)\b", re.MULTILINE)
_ELSEWHERE: Final = re.compile(
    r"(?:[Aa]rguments[^.]*(?:those of|as for)|[;]\s+see|\bFor\s[^.]*\ssee|\bas for)"
    r"\s+``(\w+)``(?=[.;,])"
)


_SENTENCE: Final = re.compile(r"``(\w+)``: (.+?)(?=;\s+``\w+``|\.\s|\.$)", re.DOTALL)
_LINE: Final = 70
"""A signature up to so long, without what it returns, stands on one line."""


class _Parameter(NamedTuple):
    name: str
    type: list[nodes.Node]
    default: str


def meanings(value: Any, homes: Mapping[str, Any]) -> dict[str, str]:
    """Return what the parameters of a function mean, by name.

    Args:
        value: the function.
        homes: functions by name, to which the docstring may refer.

    """
    found = _own(value)
    text = _SECTION.split(inspect.getdoc(value) or "")[0]
    rest = _ELSEWHERE.sub("", text)
    for name in _ELSEWHERE.findall(text):
        if other := homes.get(name):
            theirs = _own(other)
            # What the text itself says of a parameter is what differs from the other function.
            kept = {each for each in theirs if not re.search(rf"``\"?{each}\b", rest)}
            found = {each: theirs[each] for each in kept if theirs[each] != "likewise."} | found
    return {name: found[name] for name in inspect.signature(value).parameters if name in found}


def _own(value: Any) -> dict[str, str]:
    """Return what a docstring says of each parameter, in sentences or in its section ``Args``."""
    text = _SECTION.split(inspect.getdoc(value) or "")[0]
    found = {name: f"{' '.join(said.split())}." for name, said in _SENTENCE.findall(text)}
    names: list[str] = []
    for line in GoogleDocstring(inspect.getdoc(value) or "").lines():
        if match := _FIELD.match(line):
            names = [name.strip().lstrip("\\*") for name in match[1].split(",")]
            found |= dict.fromkeys(names, match[2])
        elif names and line.startswith(" "):
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
        else:
            names = []
    return found


def _tabulate(_app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Turn the fields of parameters into a table, and take the types out of the signature."""
    if domain != "py" or content.parent is None:
        return
    texts = _take(content)
    if not texts and kind != "function":
        return
    signatures = list(content.parent.findall(addnodes.desc_signature))
    signatures = [each for each in signatures if each.parent is content.parent]
    parameters = {each.name: each for signature in signatures for each in _parameters(signature)}
    if not parameters:
        return
    for name in texts.keys() - parameters.keys():  # as one says it, not as the signature does
        parameters[name] = _Parameter(name, [], "")
    content.insert(_place(content), _table(parameters, texts))
    for signature in signatures:
        _strip(signature)


def _take(content: addnodes.desc_content) -> dict[str, list[nodes.Node]]:
    """Take the fields of parameters away; return their texts, by parameter."""
    texts: dict[str, list[nodes.Node]] = {}
    for fields in [node for node in content.children if isinstance(node, nodes.field_list)]:
        for field in list(fields.children):
            what, _, names = field[0].astext().partition(" ")
            if what == "param":
                texts |= {name.strip().lstrip("*"): field[1].children for name in names.split(",")}
            if what in {"param", "type"}:
                fields.remove(field)
        if not fields.children:
            content.remove(fields)
    return texts


def _place(content: addnodes.desc_content) -> int:
    """Return where the table stands: below the description."""
    for at, node in enumerate(content.children):
        if isinstance(node, nodes.field_list | nodes.rubric | addnodes.desc | addnodes.index) or (
            isinstance(node, nodes.paragraph) and node.astext().startswith("Source: ")
        ):
            return at
    return len(content.children)


def _parameters(signature: addnodes.desc_signature) -> Iterator[_Parameter]:
    for node in signature.findall(addnodes.desc_parameter):
        first, *others = [
            each for each in node.children if isinstance(each, addnodes.desc_sig_name)
        ] or [None]
        if first is not None:  # not the mark of those by name or position alone
            shown = "".join(each.astext() for each in _default(node))
            yield _Parameter(first.astext(), [child.deepcopy() for child in others], shown)


def _default(node: addnodes.desc_parameter) -> list[nodes.Node]:
    return [
        each
        for each in node
        if isinstance(each, nodes.inline) and "default_value" in each["classes"]
    ]


def _strip(signature: addnodes.desc_signature) -> None:
    """Leave the names and defaults of parameters, on one line where they fit."""
    for node in signature.findall(addnodes.desc_parameter):
        colons = [each for each in node if isinstance(each, addnodes.desc_sig_punctuation)]
        if colons:
            default = _default(node)
            equals = [addnodes.desc_sig_operator("", "=")] if default else []
            node.children = [*node.children[: node.index(colons[0])], *equals, *default]
    for listed in signature.findall(addnodes.desc_parameterlist):
        listed["multi_line_parameter_list"] = len(signature.astext().partition("->")[0]) > _LINE


def _table(parameters: Mapping[str, _Parameter], texts: Mapping[str, list[nodes.Node]]) -> Any:
    named = {
        "parameter": lambda each: [nodes.literal(each.name, each.name)],
        "type": lambda each: [nodes.inline("", "", *each.type, classes=["parameter-type"])],
        "default": lambda each: [nodes.literal(each.default, each.default)],
        "meaning": lambda each: texts.get(each.name, []),
    }
    empty = {
        "type": not any(each.type for each in parameters.values()),
        "default": not any(each.default for each in parameters.values()),
        "meaning": not texts,
    }
    shown = {name: made for name, made in named.items() if not empty.get(name, False)}
    head = nodes.row("", *(nodes.entry("", nodes.paragraph(name, name)) for name in shown))
    body = [
        nodes.row("", *(_cell(made(each)) for made in shown.values()))
        for each in parameters.values()
    ]
    group = nodes.tgroup(
        "",
        *(nodes.colspec(colwidth=1) for _ in shown),
        nodes.thead("", head),
        nodes.tbody("", *body),
        cols=len(shown),
    )
    return nodes.table("", group, classes=["parameters"])


def _cell(content: list[nodes.Node]) -> nodes.entry:
    if not any(node.astext() for node in content):
        return nodes.entry()
    if isinstance(content[0], nodes.paragraph | nodes.bullet_list):
        return nodes.entry("", *(node.deepcopy() for node in content))
    return nodes.entry("", nodes.paragraph("", "", *content))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("object-description-transform", _tabulate, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
