"""Diagnosis of the commands."""
