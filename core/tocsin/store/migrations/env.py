"""Alembic's entry: runs the migrations over the connection that it is handed."""

from alembic import context

from tocsin.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite alters a table by copying it
    render_as_batch=True,
)
context.run_migrations()
