"""Several runners in one process, one for each site of an executor."""
