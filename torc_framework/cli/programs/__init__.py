"""The entry points of the programs, and the tree of the commands of ``torc``."""
