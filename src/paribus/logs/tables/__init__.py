"""Numbers from elsewhere: files are read as rows, checked as one table, and arranged as launches.

files.py (CSV, Parquet, JSON Lines -> rows) -> table.py (checked together) -> columns.py (what other
columns say) -> launches.py (one figure for each launch and cell, in blocks where the table has
them). Logs come to this as well: their figures are a `Source`, and its `Table` says so (`of`).
"""
