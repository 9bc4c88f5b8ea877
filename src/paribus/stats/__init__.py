"""From launches to a verdict: pure functions, numbers in, values of paribus.core.model out.

summary (launch medians) -> pairs (log ratio per block) -> estimate (ratio, interval)
-> verdict (word, against the margin), at the looks of `looks`; `schedule` draws the order of the
arms and `reliability` judges launches that failed. docs/statistics.md says why.
"""
