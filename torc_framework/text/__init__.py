"""Texts: time-limited regular expressions, redaction of secrets, and escaping of control characters."""
