"""What outputs of tools say: a text in, a Reading out, or a ParseError with its line.

One file a family holds all that is known of its output: how it is recognised and read, what it says
before it begins, when it was made, what two outputs of the same work agree in, which versions were
seen, what is demanded as proof, and what the figures mean. `known.READERS` lists them all.
"""
