"""The executor ``ssh``: runs jobs on machines that are reached over SSH and have no torc."""
