"""Python functions that are mapped to jobs: creation of the jobs, and the program that runs in each."""
