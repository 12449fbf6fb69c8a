"""Whole workflows: stored from a plan, extended, exported to a document and imported from one."""
