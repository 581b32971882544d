"""Numbers in a readable form: bytes, seconds, counts."""

from __future__ import annotations


def human_bytes(size: float) -> str:
    """
    >>> human_bytes(1536), human_bytes(5), human_bytes(3 << 30)
    ('1.5 KiB', '5 B', '3.0 GiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def human_seconds(seconds: float) -> str:
    """
    >>> human_seconds(0.4), human_seconds(7), human_seconds(200), human_seconds(7300)
    ('under 1 s', '7 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 1:
        return "under 1 s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "archive"), count(0, "archive")
    ('1 archive', '0 archives')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"
