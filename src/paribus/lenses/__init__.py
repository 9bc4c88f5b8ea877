"""Other questions about the same launches: what they cost, how they scale, how steady they are.

Each lens is a module, or a package with `lens.py`, that paribus.core.lens lists; it is loaded only
where a study needs it. From the launches that a study has stored anyway it makes rows, such as one
of energy for each benchmark and arm, and their sections in reports.
"""
