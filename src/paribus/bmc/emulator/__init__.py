"""A strict Redfish service of one 8-GPU server: what no site need risk a BMC for.

`hardware` is the server and the tree that its operating system sees, `resources` what Redfish
shows of it, `accounts` who may do what, `service` how requests are answered, `faults` how they go
wrong on purpose, and `setup` puts it behind TLS on a port of this machine.
"""
