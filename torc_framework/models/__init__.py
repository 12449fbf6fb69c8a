"""The words of the domain: statuses, resources, exits, records, plans. No I/O, nothing of ours imported."""
