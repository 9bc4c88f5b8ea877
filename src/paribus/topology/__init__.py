"""The PCIe tree of a server: read from many sources, named by its shape, compared and predicted.

An importer a file (sysfs, hwloc, nccl, smi, nvml) gives a Tree; `shape` names and hashes
it, `labels` says how two devices are joined, and `predict` what its links carry.
"""
