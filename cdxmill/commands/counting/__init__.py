"""The command `count`."""
