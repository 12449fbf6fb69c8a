"""Values of the domain: statuses, resources, exits, records, plans. No I/O, and no import from other packages."""
