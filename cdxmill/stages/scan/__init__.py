"""Filters over records, cheapest first, and what is taken from the records that pass."""
