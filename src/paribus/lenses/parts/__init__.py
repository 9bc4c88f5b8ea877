"""Which of the changes between two arms makes the difference: the part of each."""
