"""The plugin manager: discovery, registration and calls of plugins, and the list of trusted project folders."""
