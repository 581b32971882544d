"""One command per file: it opens inputs, runs tasks, writes outputs and reports failures."""
