"""The HTTP server over the store.

`http` handles requests and responses, `auth` authenticates users and checks permissions, `dispatch` turns declared
endpoints into request handlers, `routes` declares the endpoints, `async_routes` holds the routes that run in the event
loop, and `process` is the server process.
"""
