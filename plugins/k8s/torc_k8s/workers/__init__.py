"""The allocator: pods in which runners of torc work."""
