"""Faults of the file system, kills and power cuts. See __main__.py and power_cut.sh."""
