"""Run by alembic: brings the database of ``store.schema``'s connection to the newest version.

The caller has begun the transaction, with SQLite's foreign keys switched off, and commits it.
"""

from alembic import context

from torc_framework.store.tables.verdicts import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
