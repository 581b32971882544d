"""A ZipNum cluster as a thing on disk or behind a URL: its files, its manifest, where its shards are."""
