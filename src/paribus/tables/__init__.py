"""Numbers from elsewhere: readers that make one table of them, and what its rows can be paired by.

files (CSV, Parquet, JSON Lines -> columns) -> table (checked, one row per value) -> launches
(one value per launch and cell, in blocks where the table has them). Another kind of input only
needs a reader that returns `Source`s: nothing after `table.build` knows where numbers came from.
"""
