"""Who may use the dashboard: sessions, log-ins, and the checks of every request."""
