"""cdxmill turns web archives into indexes, and indexes into answers."""

__version__ = "0.1.0"
