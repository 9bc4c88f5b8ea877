"""The study: load, plan, execute, judge."""
