"""Every change of a job's status, and what follows from it: dependents, action triggers, completion of the workflow."""
