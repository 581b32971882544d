"""The checks of `verify`, one file per comparison."""
