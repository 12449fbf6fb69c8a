"""The Slurm cluster and this process's place in it: partitions, nodes, the allocation around this process."""
