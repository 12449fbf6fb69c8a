"""The command line: the programs ``torc``, ``torc-server``, ``torc-htpasswd`` and ``torc-mcp-server``."""
