"""What a unit of work costs in each arm, and how long launches held its nodes."""
