"""Running tasks: processes, progress, failures, resuming."""
