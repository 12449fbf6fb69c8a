"""Versions of the migrations."""
