"""Numbers from elsewhere: readers that make one table of them, and what pairs its rows.

files (CSV, Parquet, JSON Lines -> rows) -> table (checked together) -> launches (one figure per
launch and cell, in blocks where the table has them). Another kind of input only needs to return
`Source`s: nothing after `table.build` knows where numbers came from.
"""
