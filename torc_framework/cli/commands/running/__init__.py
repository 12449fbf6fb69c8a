"""Commands that run, submit, watch and recover workflows, and the steps that they share."""
