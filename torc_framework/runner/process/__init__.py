"""The runner as a process: settings, log, identity, signals, walltime, and what its machine offers."""
