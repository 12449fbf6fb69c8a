"""Reports on failures of jobs: verdicts with their evidence, earlier attempts, failures grouped by cause."""
