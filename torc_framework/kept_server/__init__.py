"""The kept server: a server of one user on one database that commands start and share, and that ends when it is idle.

It listens on the loopback interface, and its URL holds a token, as that of the embedded server, because jobs reach it
at ``TORC_API_URL`` with any program. The URL is in a file that only its owner can read.
"""
