"""Running tasks: processes, progress, failures, resuming, and the lock on an output directory."""
