"""What all readers of outputs share: a text in, a `Reading` out, or a ParseError with its line.

Each tool, or family of tools, has a file in tools/readers that holds all that is known of its
output: a `Reader` (reader.py). known.py lists them. Here are also the reader of our own kernels,
and the settings that outputs print (settings.py).
"""
