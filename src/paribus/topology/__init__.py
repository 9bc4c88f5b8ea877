"""The PCIe tree of a server: read from many sources, named by its shape, compared and predicted.

An importer for each source (sysfs, hwloc, nccl, grouped, stored; nvml adds to sysfs) returns a
Tree; `shape` names and hashes it and has the labels of pairs, `diff` compares two, `predict`
computes what its links carry; words, printed and svg show it.
"""
