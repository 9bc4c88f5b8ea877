"""Which nodes of a fleet are slow: rounds on all of them, a proof, a list for operators."""
