"""Studies that scale: each benchmark at several sizes, and how efficient each arm is there."""
