"""The tools for AI assistants that ``torc-mcp-server`` serves over the Model Context Protocol.

They use the public client of the HTTP API. The library for the protocol is the extra ``torc-framework[mcp]``; only
`server` imports it.
"""
