"""Compute nodes that were requested from batch systems: requests, records, use, release, for any executor.

Nothing here knows a particular batch system. An allocation is a text id and the name of the executor that obtained it;
everything else about it is asked of that executor's `Allocator`.
"""
