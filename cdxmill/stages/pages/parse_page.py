"""A decoded body -> a page: title, text, absolute links, meta elements, JSON-LD and language.

The library is selectolax with lexbor. A page of 24 kB takes 110 microseconds, twice that with resiliparse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cdxmill.stages import native
from cdxmill.stages.pages.computed import computed
from cdxmill.stages.pages.decode_text import Language, decode_text, detect_language, language_tag
from cdxmill.stages.pages.nesting import NESTED, parsed_size
from cdxmill.stages.pages.web_urls import LinkBase

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser


MAX_HTML = 32 << 20
"""Bytes of a page that are parsed. The tree of a page takes some ten times its size."""
CUT = f"the page is larger than {MAX_HTML >> 20} MiB; only its start was parsed"
_WITHOUT_TEXT = (b"script", b"style", b"noscript", b"iframe")
_ODD = (*_WITHOUT_TEXT, b"area", b"base")
"""Elements that need special treatment, and that many pages do not have."""


_BLOCKS = (
    "address,article,aside,blockquote,br,caption,center,dd,details,dialog,dir,div,dl,dt,fieldset,figcaption,figure,footer,form,h1,h2,h3,h4,"
    "h5,h6,header,hgroup,hr,legend,li,listing,main,menu,nav,ol,optgroup,option,p,plaintext,pre,search,section,summary,table,tbody,td,"
    "textarea,tfoot,th,thead,tr,ul,xmp"
)
"""Elements that begin and end a line."""
_BREAK = "\ufdd0"
"""A character that no text has (Unicode, 23.7), between two blocks."""


def _text_of(tree: LexborHTMLParser) -> str:
    body = tree.body or tree.root
    return body.text(separator=" ", strip=True, skip_empty=True) if body else ""


def _parsed_value(element: bytes) -> str | None:
    """The text of a title, or the href of another element, as lexbor reads it."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(element)
    if title := tree.css_first("title"):
        return str(title.text())
    node = tree.css_first("a, area, base")
    return node.attrs.get("href") if node else None


class Page:
    """An HTML page. `url` is its address, for its links. Properties are computed when they are first asked for.

    Needs the extra `scan`: selectolax, ada for links, resiliparse for the language and for charsets other than UTF-8.
    """

    def __init__(self, url: str, data: bytes, content_type: bytes | None = None) -> None:
        """`data` is the decoded body, `content_type` the field of the HTTP head."""
        self.url = url
        self.html, self.charset = decode_text(data, content_type, MAX_HTML)
        self.is_cut = len(data) > MAX_HTML
        self._tree: LexborHTMLParser | None = None
        self._is_stripped = False

    @computed
    def _parsed(self) -> bytes:
        """The part of the page that is parsed: all of it, if it has not too many nested elements."""
        return self.html[: parsed_size(self.html)]

    @property
    def problem(self) -> str:
        """Why not all of the page was parsed; "" if all was, or nothing yet."""
        is_nested = "_parsed" in self.__dict__ and len(self._parsed) < len(self.html)
        return CUT if self.is_cut else NESTED if is_nested else ""

    @property
    def tree(self) -> LexborHTMLParser:
        """The tree of lexbor. It is parsed again if `text` has removed the scripts from it."""
        if self._tree is None or self._is_stripped:
            from selectolax.lexbor import LexborHTMLParser

            self._tree, self._is_stripped = LexborHTMLParser(self._parsed), False
        return self._tree

    @computed
    def _outline(self) -> tuple[str, str | None, list[str | None]] | None:
        """Title, href of the base, and hrefs; None if only the tree has them. It takes a tenth of the time of the tree."""
        return native.outline(self.html, False, _parsed_value) if native.outline is not None else None

    @computed
    def title(self) -> str:
        """The title on one line."""
        found = None if native.outline is None else native.outline(self.html, True, _parsed_value)
        return " ".join((found[0] if found is not None else self._title_in_tree()).split())

    def _title_in_tree(self) -> str:
        tree = self._tree or self.tree
        head = tree.head  # whose title, if it has one, is its child: a search takes five times as long
        node = head and next((child for child in head.iter() if child.tag == "title"), None)
        node = node or tree.css_first("title:not(svg title)")
        return node.text() if node else ""

    @computed
    def links(self) -> list[str]:
        """The targets of `a` and `area`: absolute http and https URLs without fragments, in the order of the page."""
        return self.base.absolute(self.hrefs)

    @property
    def hrefs(self) -> list[str | None]:
        """What `a` and `area` elements have as their targets, as the page writes it; None for those without."""
        if self._outline is not None:
            return self._outline[2]
        tree = self.tree
        nodes = tree.css("a, area") if b"area" in self._odd_elements else tree.tags("a")
        return [node.attrs.get("href") for node in nodes]

    @computed
    def base(self) -> LinkBase:
        """The address that links start from."""
        if self._outline is not None:
            return LinkBase(self.url, self._outline[1])
        node = self.tree.css_first("base[href]") if b"base" in self._odd_elements else None
        return LinkBase(self.url, node.attrs.get("href") if node else None)

    @computed
    def _odd_elements(self) -> Sequence[bytes]:
        """Those of the elements _ODD that may be in the page. A search for each in the tree takes ten times as long."""
        return _ODD if native.elements_in is None else native.elements_in(self.html, _ODD)

    @computed
    def metas(self) -> dict[str, str]:
        """The first content of each `meta` element by its name, property or http-equiv in lower case."""
        found: dict[str, str] = {}
        for node in self.tree.css("meta[content]"):
            values = node.attributes
            name = values.get("name") or values.get("property") or values.get("http-equiv")
            if name:
                found.setdefault(name.strip().lower(), values.get("content") or "")
        return found

    @computed
    def json_ld(self) -> list[Any]:
        """The objects of the JSON-LD scripts. Invalid ones are skipped; `json_ld_errors` counts them."""
        from orjson import JSONDecodeError, loads

        found, self.json_ld_errors = [], 0
        for node in self.tree.css('script[type="application/ld+json" i]'):
            try:
                found.append(loads(node.text()))
            except JSONDecodeError:
                self.json_ld_errors += 1
        return found

    def _without_scripts(self) -> LexborHTMLParser:
        """The tree without scripts and styles. It is parsed again for whoever asks for `tree` later."""
        tree = self.tree
        if names := [name.decode() for name in self._odd_elements if name in _WITHOUT_TEXT]:
            _ = self.title  # which is often wanted, too: later, the page would have to be parsed again
            tree.strip_tags(names)
            self._is_stripped = True
        return tree

    @computed
    def text(self) -> str:
        """The text without scripts and styles. Between two elements there is a space, also within a word."""
        return _text_of(self._without_scripts())

    @computed
    def text_lines(self) -> str:
        """The title, and the words of the text with a line for each block, such as a paragraph or a row of a table."""
        title, tree = self.title, self._without_scripts()
        self._is_stripped = True
        for node in tree.css(_BLOCKS):
            node.insert_before(_BREAK)
            node.insert_after(_BREAK)
        lines = (" ".join(line.split()) for line in _text_of(tree).split(_BREAK))
        return "\n".join(filter(None, (title, *lines)))

    @computed
    def main_text(self) -> str:
        """The main content, without menus, footers and the like, in lines, as resiliparse finds it."""
        from resiliparse.extract.html2text import extract_plain_text

        html = self._parsed.decode("utf-8", "replace")
        return str(extract_plain_text(html, main_content=True, alt_texts=False))

    @computed
    def language(self) -> Language:
        """The language of the text."""
        return detect_language(self.text)

    @computed
    def declared_language(self) -> str | None:
        """The language that the page declares for itself, such as `en-us`: the element `html`, or else a `meta` element."""
        root = self.tree.root
        values = root.attributes if root else {}
        declared = (values.get("lang"), values.get("xml:lang"), self.metas.get("content-language"))
        return next((tag for text in declared if (tag := language_tag(text))), None)

    @computed
    def tags(self) -> Counter[str]:
        """How often each tag occurs, by its name in lower case."""
        root = self.tree.root
        return Counter(node.tag or "" for node in root.traverse()) if root else Counter()
