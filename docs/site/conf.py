# SPDX-License-Identifier: MIT OR Apache-2.0
"""How Sphinx makes a site of the docs; docs/site/build.sh lays its sources out."""

project = "blklab"
author = "The blklab maintainers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = "blklab"
# Headings are the targets of links within and between pages.
myst_heading_anchors = 4
# Pages link to files of the repository, which the site does not have; code blocks have prompts
# and output of the command, whose languages nobody highlights.
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure", "toc.not_included"]
numpydoc_show_class_members = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# Everything comes from this machine.
html_use_opensearch = ""
