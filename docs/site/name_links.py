"""Public names in code font become links to their entries in the reference.

On every page, ``tp.nn.conv2d`` links to its entry. In an entry, a name alone links to the function
beside it: ``conv2d`` in the entry of ``tp.nn.max_pool``, unless a parameter is called so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAME: Final = re.compile(r"(?:(tp|tensorplug)\.)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?")
# Where a link would hide another link, or repeat a name that is not there to be followed.
_WITHOUT: Final = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)


def _link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    objects = app.env.domains.python_domain.objects
    for literal in list(doctree.findall(nodes.literal)):
        match = _NAME.fullmatch(literal.astext())
        if match is None or any(isinstance(node, _WITHOUT) for node in _parents(literal)):
            continue
        prefix, name = match.groups()
        entry = next((node for node in _parents(literal) if isinstance(node, addnodes.desc)), None)
        if prefix:
            full = f"tensorplug.{name}"
        elif entry is not None and (home := _home(entry)) and name not in _parameters(entry):
            full = f"{home}.{name}"
        else:
            continue
        found = objects.get(full)
        if found is None or (entry is not None and full in _names(entry)):
            continue
        target = app.builder.get_relative_uri(page, found.docname)
        link = nodes.reference("", "", internal=True, refuri=f"{target}#{found.node_id}")
        literal.replace_self(link)
        link += literal


def _parents(node: nodes.Node) -> list[nodes.Node]:
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def _names(entry: addnodes.desc) -> list[str]:
    """Return the full names that an entry describes; several if it is of several functions."""
    return [
        f"{signature['module']}.{signature['fullname']}"
        for signature in entry.findall(addnodes.desc_signature)
        if signature.parent is entry and "fullname" in signature
    ]


def _home(entry: addnodes.desc) -> str:
    """Return the namespace of a function's entry; "" for methods, which speak of their class."""
    names = _names(entry)
    return names[0].rpartition(".")[0] if names and entry["objtype"] == "function" else ""


def _parameters(entry: addnodes.desc) -> set[str]:
    return {
        parameter.next_node(addnodes.desc_sig_name).astext()
        for parameter in entry.findall(addnodes.desc_parameter)
        if parameter.next_node(addnodes.desc_sig_name) is not None
    }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", _link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
