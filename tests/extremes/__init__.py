"""A lens that tests add: the slowest launch of each arm."""
