"""Support of the testing."""
