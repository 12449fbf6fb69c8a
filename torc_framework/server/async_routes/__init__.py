"""Routes that run in the event loop, because they wait, stream, or must answer when all threads are busy."""
