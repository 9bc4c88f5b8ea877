"""How fit a machine is to measure on: its settings, and what a short trial shows."""
