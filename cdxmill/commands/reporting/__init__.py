"""`report`."""
