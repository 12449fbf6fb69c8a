"""Allocations: submitting batch jobs that start runners, finding them again, and reporting how they wait and end."""
