"""The PCIe tree of a server switched through its BMC, and an emulated BMC to try it on.

A BMC (baseboard management controller) is the small computer that manages a server. `profiles`
reads how a BMC is reached and what a profile file wants, `client` speaks Redfish (HTTPS and JSON),
`steps` turns a profile into writes with their checks, `switch` runs them and proves the result by
the tree that the operating system sees, and `journal` makes that safe from kills.
"""
