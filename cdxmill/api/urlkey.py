"""`urlkey`: the key of a URL in an index."""

from __future__ import annotations

from cdxmill.errors import UsageError
from cdxmill.formats.lines.surt import surt


def urlkey(url: str, keep_www: bool = False) -> str:
    """The urlkey (SURT) of a URL, by which index lines are sorted. Raises UsageError if the URL is invalid.

    >>> urlkey("http://www.example.com/a?z=1&b=2")
    'com,example)/a?b=2&z=1'
    """
    try:
        return surt(url.encode("utf-8", "surrogateescape"), keep_www).decode()
    except ValueError as error:
        raise UsageError(f"{url}: invalid URL ({error})") from None
