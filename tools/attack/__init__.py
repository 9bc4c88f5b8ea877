"""Attacks on Paribus from outside, through its command line: what must hold whatever happens.

__main__    plan, run, table of results: reads as the pipeline
ground      what all attacks share: the victim's program, a warm cache, a calm study
arena       one attack: a process and directories of its own, and what was left behind
victim      studies to attack, Paribus started on them, and how it ended
stored      what a study directory holds, read without Paribus
one file for each family of attacks: kill signals switches space damage inputs authors
stranger (with hostile) secrets clock
"""
