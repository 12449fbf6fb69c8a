"""The face for assistants: the tools of ``torc-mcp-server``, which speaks the Model Context Protocol.

It uses the client as any outsider would. The library for the protocol is an extra,
``torc-framework[mcp]``, and only `server` imports it.
"""
