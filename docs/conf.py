# ruff: noqa: INP001 - not a package
"""Sphinx configuration of the documentation; `make docs` builds it into docs/_build/html."""

from __future__ import annotations

project = "Tocsin"
author = "The Tocsin authors"
copyright = "The Tocsin authors"  # noqa: A001 - Sphinx' name
html_title = "Tocsin"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
# index.md includes README.md, the entrance for readers of the repository.
exclude_patterns = ["_build", "README.md"]

myst_heading_anchors = 6
# Pages link to the code and to pages at the root, which are not part of the site.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
