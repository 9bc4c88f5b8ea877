"""The light cluster, `paribus cluster`: hosts checked for MPI launches, set up, and taken down.

opened reaches the hosts; answers asks each by one script; checks, mpi and links make findings of
the answers; preflight is all of these; setup gives nodes keys and hostfiles, and removes them.
"""
