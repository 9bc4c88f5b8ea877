"""Batch systems: nodes lent for a study, by Slurm, Grid Engine, PBS, Torque, Flux or Kubernetes.

dialect.py says what Paribus needs of a batch system; slurm.py, ... have its commands and read its
answers, as pure functions of texts; allocations.py runs them and keeps the jobs.
"""
