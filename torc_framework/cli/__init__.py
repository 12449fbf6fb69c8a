"""The command line: `torc` and `torc-server`."""
