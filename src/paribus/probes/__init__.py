"""What a machine is: one shell script that reads it, and small parsers that return facts.

script() is what to start on a node, inside the launch; facts_from_stream() reads its answer. What
is read is in paths.txt, every key in keys.toml.
"""

from paribus.probes.archive import Archive, script, unknown
from paribus.probes.facts import facts_from_stream, facts_of
from paribus.probes.load import background_load, load_between
from paribus.probes.stream import from_stream
