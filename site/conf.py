"""The documentation as a site, from the pages as they stand in the repository; `scripts/site` builds it."""

import os
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

# When the page about Python imports it, LiteLLM would look for newer prices in the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

project = "debora"
author = copyright = "The debora developers"
release = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]

# Sphinx with MyST reads CommonMark and makes anchors as repository hosts do, so a page is the same in both places.
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "site/python-api.md"]
exclude_patterns = ["target"]

html_theme = "furo"
html_title = f"debora {release}"
html_copy_source = False
html_show_sourcelink = False
# The interfaces of Rust and of the service are made by other tools, and are no pages of the repository: the sidebar links them.
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "interfaces.html",
        "sidebar/scroll-end.html",
    ]
}
python_use_unqualified_type_names = True

CONTENTS = {
    "Start": ["Which page is for you <docs/README>", "A first hour <docs/guide>"],
    "Use it": [
        "Python <docs/python>",
        "Many machines <docs/sweeps>",
        "Live experiments <docs/service>",
        "Feature flags <docs/flags>",
        "Queries <docs/export>",
        "Language models <docs/models>",
        "Metrics and alerts <docs/metrics>",
        "Alerts <docs/alerts>",
        "Audit <docs/audit>",
    ],
    "Trust it": [
        "Theory <docs/theory>",
        "Deviations from the paper <docs/deviations>",
        "Experiments <docs/experiments>",
        "Benchmarks <docs/benchmarks>",
    ],
    "Project": ["Changelog <CHANGELOG>", "Contributing <CONTRIBUTING>", "Security <SECURITY>"],
    # Last, as the sidebar adds those of Rust and of the service.
    "Interfaces": ["Python interface <site/python-api>"],
}


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """The order of pages is the site's own: in the repository it would be noise at the end of the README."""
    if name == root_doc:
        for caption, pages in CONTENTS.items():
            source[0] += "\n\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_contents)
