"""The language of workflow files: classes of entries, JSON schema, options of a caller, and findings."""
