"""The command `copy`."""
