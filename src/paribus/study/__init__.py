"""The study: load, plan, execute, audit, judge."""
