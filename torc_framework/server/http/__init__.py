"""Requests and responses: parsing, encoding, limits, access log and request metrics."""
