"""Access control: callers, access groups, and the checks of who may see and change which workflow."""
