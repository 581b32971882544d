"""Moves bytes (open, read a range, write whole or not at all) and knows no format."""
