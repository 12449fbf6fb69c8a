"""Authentication of users, and permissions of endpoints."""
