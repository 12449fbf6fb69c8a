"""The group ``torc workflows``."""
