"""Readers of workflow files: from a file in YAML, JSON, JSON5 or KDL to a document, with positions for findings."""
