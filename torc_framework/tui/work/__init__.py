"""What runs beside the screens: requests, the event stream, commands, and the key table."""
