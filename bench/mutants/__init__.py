"""Mutants of real archives. See __main__.py."""
