"""Every link of a site leads to a file of it, every anchor to a place, and nothing is loaded from elsewhere.

``python links.py FOLDER [LEFT_OUT...]``: pages below a folder that is left out are linked, but are not read themselves.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, what it links and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if "src" in values or tag == "link":
            self.loads.append(values.get("src") or values.get("href", ""))
        elif "href" in values:
            self.links.append(values["href"])


def faults(folder: Path, left_out: list[str]) -> list[str]:
    pages = {path.resolve(): Page(path.read_text()) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        if name.parts[0] in left_out:
            continue
        for link in page.links + page.loads:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                # What others publish is not fetched: that it is there today says nothing of tomorrow.
                if link in page.loads and address.scheme != "data":
                    found.append(f"{name} loads {link}")
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            if not target.is_file():
                found.append(f"{name}: {link} leads to no file")
            elif place and target in pages and place not in pages[target].places:
                found.append(f"{name}: {link} leads to no place")
    return found


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]), sys.argv[2:])
    sys.exit("\n".join(wrong) or 0)
