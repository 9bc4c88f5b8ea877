"""What reports say of each design: one file for each, as in paribus.designs."""
