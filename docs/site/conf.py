"""The configuration of the documentation site; ``make site`` builds it into ``out/site``.

The pages are the Markdown files of ``docs``. Beside them stand the pages of the public functions,
which ``reference.py`` writes before each build, and those that ``generated_pages.py`` writes.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent
sys.path[:0] = [str(HERE), str(DOCS.parent)]  # this folder's extensions, and the tests' lists

# An op package that is installed here gives the Tensor methods, which are not the core's.
os.environ["TENSORPLUG_DISABLE_PLUGINS"] = "example_swish"

from source_links import place  # noqa: E402 - a module of this folder

project = "tensorplug"
author = "The tensorplug developers"
copyright = f"2026, {author}"
about = tomllib.loads((DOCS.parent / "core" / "pyproject.toml").read_text("utf-8"))["project"]
version = release = about["version"]
urls = about["urls"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "generated_pages",
    "name_links",
    "narrow_screens",
    "notebooks",
    "parameter_tables",
    "reference",
    "repository_links",
]
exclude_patterns = ["site", "badges", "README.md"]
root_doc = "index"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autodoc_typehints_format = "short"
autodoc_member_order = "groupwise"
autodoc_default_options = {"exclude-members": "__init__, __new__"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# What a command prints is no shell code, and may hold an odd number of quotes.
suppress_warnings = ["misc.highlighting_failure"]


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of an entry's source."""
    path = place(info["module"], info["fullname"]) if domain == "py" else ""
    return f"{urls['Repository']}/blob/main/{path}" if path else None


html_theme = "pydata_sphinx_theme"
html_title = "tensorplug"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
wide = [
    *(f"coming_from/{library}" for library in ("numpy", "pytorch", "jax")),
    "coming_from/tfjs",
    "support",
]
html_theme_options = {
    "logo": {"text": "tensorplug"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    # Programs side by side and broad tables need the whole width.
    "secondary_sidebar_items": {"**": ["page-toc"]} | {page: [] for page in wide},
    "navigation_with_keys": False,
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "icon_links": [
        {
            "name": "Repository",
            "url": urls["Repository"],
            "icon": "fa-brands fa-github",
        }
    ],
}
