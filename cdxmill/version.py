"""The version of the package; its only home."""

__version__ = "0.1.0"
