"""Clusters: which are known, where we are, and which partition fits what jobs ask for."""
