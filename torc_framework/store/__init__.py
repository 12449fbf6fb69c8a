"""The database: tables, migrations, transactions, and every change of a workflow's state. Only this package has SQL.

A caller opens a `Database`, begins a transaction with ``write()`` or ``read()``, and passes it to functions of these
packages, each of which imports only those above it:

- ``table_classes``, ``tables`` and ``migrations``: the declaration of the tables, the tables made from it, and the
  upgrade of older databases;
- ``database``: the two kinds of databases, transactions, statements;
- ``records``: create, read, update and delete records of any kind; events;
- ``job_state``: every change of a job's status, and all that follows from it;
- ``runs``: begin, initialize, reset and cancel runs;
- ``record_kinds``: the rules of each kind of record;
- ``workflows``: store, export and import whole workflows;
- ``access``: who may use which workflow;
- ``exchange``: what runners report and which jobs they get;
- ``recovery``: what is done about failed jobs.

The store keeps nothing about jobs in memory between transactions, so that several processes may use one database at
once.
"""
