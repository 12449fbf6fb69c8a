"""Child processes of the runner, and the event loop that waits for them."""
