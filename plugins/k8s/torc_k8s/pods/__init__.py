"""Pods of attempts: what they are asked to be, and what their status says."""
