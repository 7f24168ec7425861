"""A preprocessor of mdBook: a link from a page to the rest of the repository leads to the
repository's site. A link to a file or a heading that is not there ends the build, and so
does a page of docs/ that the book doesn't list.
"""

import json
import os
import re
import sys
from pathlib import Path

SITE = "https://github.com/whosup/whosup"
ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def chapters(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            yield chapter
            yield from chapters(chapter["sub_items"])


def headings(path):
    """The anchors of a page, by the rule of GitHub and mdBook."""
    text = FENCE.sub("", path.read_text())
    for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


class Pages:
    def __init__(self, pages):
        self.pages = pages
        self.problems = []

    def link(self, page, target):
        if re.match(r"[a-z]+:", target):
            return target
        # The first page is README.md, the links of which start at the root.
        folder = ROOT if page == "index.md" else ROOT / "docs"
        name, _, anchor = target.partition("#")
        path = Path(os.path.normpath(folder / name)) if name else folder / page
        if page == "index.md" and not name:
            path = ROOT / "README.md"
        if not (path.exists() and path.is_relative_to(ROOT)):
            self.problems.append(f"{page}: there is no {target}")
            return target
        if anchor and path.suffix == ".md" and anchor not in headings(path):
            self.problems.append(f"{page}: there is no heading for {target}")
        return self.place(path.relative_to(ROOT), path.is_dir()) + (f"#{anchor}" if anchor else "")

    def place(self, path, is_folder):
        """Where a reader of the book finds a file of the repository."""
        if path == Path("README.md"):
            return "index.md"
        if path.parent == Path("docs") and (path.suffix != ".md" or path.name in self.pages):
            return path.name
        return f"{SITE}/{'tree' if is_folder else 'blob'}/main/{path}"

    def rewrite(self, page, text):
        parts = FENCE.split(text)
        # The odd parts are code.
        for at in range(0, len(parts), 2):
            parts[at] = LINK.sub(lambda found: f"]({self.link(page, found[1])})", parts[at])
        return "".join(parts)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    listed = list(chapters(book.get("items") or book.get("sections")))
    pages = Pages({chapter["path"] for chapter in listed})
    for chapter in listed:
        chapter["content"] = pages.rewrite(chapter["path"], chapter["content"])
    written = {path.name for path in (ROOT / "docs").glob("*.md")} - {"SUMMARY.md"}
    pages.problems += [f"docs/SUMMARY.md doesn't list {name}" for name in written - pages.pages]
    if pages.problems:
        sys.exit("\n".join(pages.problems))
    json.dump(book, sys.stdout)


main()
