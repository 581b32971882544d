"""Every option and argument, declared once. The command line, the API, the jobs and the Spark scripts derive theirs from it."""
