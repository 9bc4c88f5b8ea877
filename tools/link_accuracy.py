"""Measure what the links of pocket hosts do against what is asked of them.

    tools/link_accuracy.py [SECONDS]

Between two hosts, for each link of LINKS: the time of UDP packets of a few bytes there and back,
and the rate of one TCP connection in SECONDS (2). Prints a table as in docs/clusters.md.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from paribus.hosts.links import read_link
from paribus.hosts.pocket import Pocket
from paribus.hosts.reached import Host

LINKS: tuple[dict[str, str], ...] = (
    {},
    {"delay": "100 us"},
    {"delay": "500 us"},
    {"delay": "2 ms"},
    {"delay": "10 ms"},
    {"rate": "100 Mbit"},
    {"rate": "1 Gbit"},
    {"rate": "1 Gbit", "delay": "500 us"},
    {"loss": "1 %"},
)

ECHO = """
import os, socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 5000))
if os.fork(): raise SystemExit
os.setsid()
[os.close(n) for n in (0, 1, 2)]
while True:
    data, peer = server.recvfrom(2000)
    server.sendto(data, peer)
"""

ASK = """
import socket, sys, time
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect((sys.argv[1], 5000))
client.settimeout(0.3)
for number in range(int(sys.argv[2])):
    begin = time.perf_counter()
    client.send(b"%d" % number)
    try:
        while client.recv(2000) != b"%d" % number: pass
        print(time.perf_counter() - begin)
    except TimeoutError:
        pass
"""

SINK = """
import os, socket
server = socket.create_server(("", 5001))
if os.fork(): raise SystemExit
os.setsid()
[os.close(n) for n in (0, 1, 2)]
peer, _ = server.accept()
total = 0
while data := peer.recv(1 << 20): total += len(data)
peer.send(b"%d" % total)
"""

SEND = """
import socket, sys, time
client = socket.create_connection(("h2", 5001))
block, seconds = bytes(1 << 16), float(sys.argv[1])
begin = time.perf_counter()
while time.perf_counter() - begin < seconds:
    client.sendall(block)
client.shutdown(socket.SHUT_WR)
total = int(client.recv(99))
print(total * 8 / (time.perf_counter() - begin))
"""


def python(host: Host, code: str, *arguments: str) -> str:
    """Return what Python code prints in `host`, which sees this machine's Python."""
    words = [sys.executable, "-I", "-S", "-c", code, *arguments]
    argv = [*host.shell, "-c", 'exec "$@"', "sh", *words]
    return subprocess.run(argv, text=True, stdout=subprocess.PIPE, check=True).stdout


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    print("| link | round trip: minimum, median, p95 (us) | lost | TCP (Mbit/s) |")
    print("|---|---|---|---|")
    for asked in LINKS:
        link = read_link(asked) if asked else None
        with (
            tempfile.TemporaryDirectory() as folder,
            Pocket(2, link=link, directory=str(Path(folder, "pocket"))) as pocket,
        ):
            first, second = pocket.hosts
            python(second, ECHO)
            python(second, SINK)
            times = sorted(float(t) * 1e6 for t in python(first, ASK, "h2", "500").split())
            rate = float(python(first, SEND, str(seconds))) / 1e6
        low, middle, high = times[0], statistics.median(times), times[int(0.95 * len(times))]
        words = ", ".join(f"{key} {value}" for key, value in asked.items()) or "none"
        lost = f"{500 - len(times)} of 500"
        print(
            f"| {words} | {low:.0f}, {middle:.0f}, {high:.0f} | {lost} | {rate:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
