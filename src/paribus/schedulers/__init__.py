"""Batch systems: how each is asked for nodes, and what its answers say."""
