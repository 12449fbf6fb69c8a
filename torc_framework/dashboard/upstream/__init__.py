"""The server behind the dashboard: its address and state, requests that are passed on, its streams of events."""
