"""The sentences of reports on each design: one file for each, as in paribus.designs."""
