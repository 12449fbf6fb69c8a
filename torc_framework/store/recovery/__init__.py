"""What is done about failed jobs: verdicts, recoveries, and new schedulers for jobs that still have to run."""
