"""What `from cdxmill import ...` gives: plain functions with keyword arguments, small typed results."""
