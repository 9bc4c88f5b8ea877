"""The PCIe tree of a server: read from many sources, named by its shape, compared and predicted.

An importer a file (sysfs, hwloc, nccl, smi, nvml) gives a Tree; `shape` names it, `identity` hashes
it, `labels` says how two devices are joined, and `flows` predicts what its links carry.
"""
