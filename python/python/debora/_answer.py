"""Answers laid out: as text for a console, as HTML for a notebook.

An answer is a list of items, each a dictionary with one key: ``paragraph`` (sentences, each a list of spans with
``tone`` and ``text``), ``table`` (``columns`` and ``rows``) or ``note`` (a text about the item before it).
"""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any, TypeAlias

Answer: TypeAlias = list[dict[str, Any]]
"""What was found, for people."""

WIDTH = 80
"""Columns of a line: what the program has, so that both print the same."""


def sentence(words: str) -> list[dict[str, str]]:
    """A sentence in a plain tone."""
    return [{"tone": "plain", "text": words}]


def text(answer: Answer) -> str:
    """Each sentence on a line of its own, and blank lines between paragraphs and tables."""
    blocks: list[str] = []
    for item in answer:
        lines = _lines(item)
        if "note" in item and blocks:
            blocks[-1] += "\n" + lines
        else:
            blocks.append(lines)
    return "\n\n".join(blocks)


def html(answer: Answer) -> str:
    """Sentences as running text, tables as they stand on a console."""
    blocks: list[str] = []
    for item in answer:
        if "paragraph" in item:
            blocks.append(escape(" ".join(_words(one) for one in item["paragraph"]), quote=False))
        else:
            blocks.append(f"<pre>{escape(_lines(item), quote=False)}</pre>")
    return f"<div>{'<br>'.join(blocks)}</div>"


def _lines(item: dict[str, Any]) -> str:
    if "table" in item:
        return _aligned(item["table"])
    if "note" in item:
        return f"  {item['note']}"
    # Names keep their hyphens, and digests are not broken: both are copied.
    filled = (
        textwrap.fill(_words(one), WIDTH, break_long_words=False, break_on_hyphens=False) for one in item["paragraph"]
    )
    return "\n".join(filled)


def _words(spans: list[dict[str, str]]) -> str:
    return "".join(span["text"] for span in spans)


def _aligned(table: dict[str, Any]) -> str:
    columns = table["columns"]
    rows = [[column["name"] for column in columns], *table["rows"]]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns))]
    sides = ["<" if column["align"] == "left" else ">" for column in columns]
    lines = (
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)) for row in rows
    )
    return "\n".join(f"  {line}".rstrip() for line in lines)
