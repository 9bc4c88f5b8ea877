"""All pairs of nodes: a matrix of each figure, and the slow nodes and pairs in it."""
