"""The script that Alembic runs to migrate the database of the connection that `upgrade.migrate` passes.

The caller has begun the transaction, with SQLite's foreign keys switched off, and commits it.
"""

from alembic import context

from torc_framework.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
