"""A hook of mkdocs: pages and files outside docs/ that the site needs.

The pages of docs/ link to files of the checkout, such as `../SECURITY.md` and `../conf/pywb/config.yaml`. The README,
the changelog and their like become pages of the site. Any other file is copied to `files/`.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the checkout, and their names in the site."""

# The target of `[text](target)` and of `![text](target)`; no anchor, nothing with a scheme.
_TARGET = re.compile(r"(?<=\]\()(?![a-z]+:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the checkout, and the files that any page links to."""
    sources = {f"docs/{file.src_uri}" for file in files.documentation_pages()} | PAGES.keys()
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    linked = {target for source in sources for target in _targets(source)}
    for target in sorted(linked):
        if not target.startswith("docs/") and target not in PAGES and (ROOT / target).is_file():
            files.append(File.generated(config, _in_site(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make the links of a page lead to where their targets are in the site."""
    name = page.file.src_uri
    source = next((source for source, site in PAGES.items() if site == name), f"docs/{name}")

    def link(match: re.Match[str]) -> str:
        return os.path.relpath(_in_site(_target(source, match[1])), PurePosixPath(name).parent)

    return _TARGET.sub(link, markdown)


def _targets(source: str) -> list[str]:
    return [_target(source, match) for match in _TARGET.findall((ROOT / source).read_text())]


def _target(source: str, link: str) -> str:
    """The path in the checkout to which a link of a page leads."""
    return os.path.normpath(PurePosixPath(source).parent / link)


def _in_site(path: str) -> str:
    """The place in the site of a path in the checkout.

    >>> _in_site("docs/formats/cdxj.md"), _in_site("README.md"), _in_site("conf/pywb/config.yaml")
    ('formats/cdxj.md', 'index.md', 'files/conf/pywb/config.yaml')
    """
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"files/{path}")
