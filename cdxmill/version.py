"""The version of the package, and how its extras are installed; their only home."""

from __future__ import annotations

__version__ = "0.1.0"
HOME = "https://github.com/cdxmill/cdxmill"
"""The address of the project. Requests to web servers name it."""


def install_extra(extra: str) -> str:
    """How to install the libraries of an extra. From a checkout, as long as PyPI has no cdxmill: another could take the name.

    >>> install_extra("s3")
    "pip install './cdxmill[s3]', with a checkout in ./cdxmill"
    """
    return f"pip install './cdxmill[{extra}]', with a checkout in ./cdxmill"
