"""The only room with SQL: tables, migrations, transitions, queries.

A caller opens a `Database`, begins a transaction with ``write()`` or ``read()``, and hands it to
the functions of the modules beside this one. Nothing about jobs is kept in memory between
transactions, so that any number of processes may use one database at once.
"""
