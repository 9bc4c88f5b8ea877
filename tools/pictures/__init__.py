"""The pictures of docs/statistics.md, as Vega-Lite specifications: one function each.

style      what they share
recorded   from the launches in tests/data
verdicts   the margin and the looks
protocols  cost and error against 100 launches, averaged
"""
