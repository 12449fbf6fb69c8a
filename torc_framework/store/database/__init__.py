"""SQLite and PostgreSQL databases: opening, transactions, statements, errors of the drivers."""
