"""Which nodes and links of a fleet are slow: rounds on all of them, a proof, a list for operators.

The files, in the order in which data flows:

verb, sitting    what the command line asks for, run and shown
fleet            nodes, each reached and made ready by itself
slurm, batches   nodes of a partition: the idle ones, or all as they come free
plan             what is frozen before the first launch
rounds           the launches of a round, each stored as it ends
known            what the stored launches say, and the course that they lead to
course           questions on what may be slow: nominated, proved afresh, decided
nodes, links     which questions there are, and who is launched beside them
answer, peers    a line for each node, path and group; facts in which slow nodes differ from others
words            the lines as sentences; printed, page, operators: where they are shown
before           a screen before another one, or before a comparison
"""
