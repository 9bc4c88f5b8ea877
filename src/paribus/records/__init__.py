"""What stands in launches.db: rows with checksums, how they are read, and what damage is."""
