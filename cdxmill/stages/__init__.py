"""The pipeline: iterators in, iterators out; nothing here knows a path's scheme or prints."""
