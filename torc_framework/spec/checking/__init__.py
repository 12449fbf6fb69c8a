"""Checks of a document against the JSON schema, and its conversion into a `WorkflowSpec`."""
