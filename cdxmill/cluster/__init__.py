"""A ZipNum cluster at a path or URL: its files, its manifest, its shards and their locations."""
