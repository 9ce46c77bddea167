"""Every example in a docstring runs, and so do the Python lines of the README and of the pages about Python."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

import debora
from debora import _records
from pages import ROOT, check


def documented() -> Iterator[tuple[str, str]]:
    """All public names with their docstrings, methods and properties too."""
    yield "debora", debora.__doc__ or ""
    for name in debora.__all__:
        value = getattr(debora, name)
        members = {name: value}
        if inspect.isclass(value) or inspect.ismodule(value):
            members |= {f"{name}.{inner}": member for inner, member in vars(value).items() if not inner.startswith("_")}
        for path, member in sorted(members.items()):
            if callable(member) or isinstance(member, property | classmethod) or inspect.isdatadescriptor(member):
                yield path, inspect.getdoc(member) or ""


@pytest.mark.parametrize(("name", "text"), [pytest.param(*entry, id=entry[0]) for entry in documented()])
def test_docstrings(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text, f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test)
    assert runner.failures == 0, capsys.readouterr().out


def test_every_field_of_a_record_is_explained_below_it() -> None:
    """Such a text is no docstring when the program runs: editors and the site read it from the source."""
    classes = [one for one in ast.parse(inspect.getsource(_records)).body if isinstance(one, ast.ClassDef)]
    for one in classes:
        for entry, below in pairwise([*one.body, ast.Pass()]):
            if isinstance(entry, ast.AnnAssign) and not ast.unparse(entry.target).startswith("_"):
                text = ast.unparse(below).strip("'\"") if isinstance(below, ast.Expr) else ""
                assert text, f"{one.name}.{ast.unparse(entry.target)} is not explained"


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/models.md", "python/PYPI.md"])
def test_pages(page: str) -> None:
    check(page)


def test_the_package_page_stands_alone() -> None:
    """Package indices show it without the repository around it, where a relative link leads nowhere."""
    links = re.findall(r"\]\((.*?)\)", (ROOT / "python/PYPI.md").read_text())
    assert all(link.startswith("https://") for link in links), links
