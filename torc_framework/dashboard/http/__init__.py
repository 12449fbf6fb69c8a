"""Bodies of requests, errors as answers, and the limits on both and on everything else."""
