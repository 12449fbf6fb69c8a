"""The embedded server: a child process on the loopback interface that a command or a test starts for itself."""
