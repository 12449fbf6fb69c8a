"""What the contract suites are made of: clauses, generated values, a bench for launchers, a fake batch system."""
