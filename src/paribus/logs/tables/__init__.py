"""Numbers from elsewhere: files are read as rows, checked as one table, and arranged as launches.

files.py (CSV, Parquet, JSON Lines -> rows) -> table.py (checked together) -> columns.py (what other
columns say) -> launches.py (one figure for each launch and cell, in blocks where the table has
them). Another kind of input only needs to return a `Source`: nothing after `table.build` knows
where numbers came from.
"""
