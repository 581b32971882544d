"""Formats of index lines and of queries for them."""
