"""Pods as values: options, specifications, and what a pod's status says about an attempt."""
