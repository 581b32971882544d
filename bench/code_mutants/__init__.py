"""Small faults in the code, one at a time, that the tests have to notice. See __main__.py."""
