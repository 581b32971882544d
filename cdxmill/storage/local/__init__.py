"""Files of this machine."""
