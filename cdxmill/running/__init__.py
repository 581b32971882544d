"""How work is run: processes, progress, failures, resuming."""
