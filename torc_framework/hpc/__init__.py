"""HPC clusters: their profiles, the matching of partitions, and the planning of schedulers for a workflow's jobs."""
