"""From launches to a verdict: pure functions, numbers in, values of paribus.core.model out.

summary (launch medians: 2.0 and 2.1 us) -> pairs (log ratio of a block: ln 1.05) -> estimate
(ratio and interval: 1.05 [1.04, 1.06]) -> verdict (a word by the margin: "slower"), at the looks of
`looks`; `schedule` draws the order of the arms, `reliability` judges launches that failed.
docs/statistics.md has the reasons.
"""
