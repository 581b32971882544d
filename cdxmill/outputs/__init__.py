"""The outputs of a command: their names, which exist, their record, and the lists of failures beside them."""
