"""What a cluster offers: nodes, quotas and limits, as a cluster profile."""
