"""What tasks do with CDX files: group, sort, sample."""
