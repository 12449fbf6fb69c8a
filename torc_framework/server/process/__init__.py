"""The server process: its application, main function, daemon mode, certificate check, and worker program."""
