"""Texts: sizes, durations, statuses and colours; expressions with limited time; redaction; control characters."""
