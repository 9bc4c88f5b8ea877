"""The PCIe tree of a server: read from many sources, named by its shape, compared and predicted.

An importer a file (sysfs, hwloc, nccl, grouped, nvml) gives a Tree; `shape` names and hashes it
and says how two devices are joined, `predict` what its links carry.
"""
