"""The PCIe tree of a server switched through its BMC, and an emulated BMC to try it on.

`access` says how a BMC is reached, `client` speaks Redfish to it, `profiles` reads what a profile
file wants, `steps` turns that into writes with their checks, `switch` runs them and proves
the result by the tree that the operating system sees, and `journal` makes that safe from kills.
"""
