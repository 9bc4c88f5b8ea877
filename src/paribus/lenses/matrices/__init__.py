"""All pairs of nodes: a matrix of each figure, and what is slow in it."""
