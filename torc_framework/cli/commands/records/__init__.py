"""Commands on the records of a workflow: jobs, files, results, events and others."""
