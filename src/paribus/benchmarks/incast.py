"""Incast: several hosts write into one at the same time, with perftest's ib_write_bw.

Rank 0 receives, every other rank sends. The script below is what each rank executes: rank 0 starts
one ib_write_bw for each sender, on ports that follow each other, and when all have ended the ones
for the next number of queue pairs; a sender tries until its receiver is there, so that all senders
begin together. A line that a sender prints bears its number, so lines may come in any order; rank 0
says first how many senders there are, and which numbers of queue pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from paribus.benchmarks._parameters import positive
from paribus.benchmarks._perftest import GET, VERSIONS, device, gid_index
from paribus.benchmarks._perftest_text import COMPLAINTS, bandwidth_rows, heading, parameters_of
from paribus.benchmarks._tool import line_at, line_of, once, path_or, refuse, tool
from paribus.errors import ParseError
from paribus.model import Case, Metric, Parameter, Program, Reading, Request, Sample, Scalar

_LINE = re.compile(r"^\[incast ([1-9][0-9]*+/[0-9]++ [1-9][0-9]*+)\] ?(.*)", re.M)
_BEGIN = "[incast of "
_TITLE = re.compile(r"^\[incast of ([0-9]+)\] ([0-9]+(?: [0-9]+)*) *$", re.M)
_SPAN = re.compile(r"(begin|end) (\d{9,11})$")
_OVERLAP = 0.9

# $1: ib_write_bw, $2: receiver's address, $3: first port, $4: queue pairs, $5: seconds, $6: bytes,
# then more options. The seconds of a clock are enough: a sender lasts several of them.
SCRIPT = r"""
program=$1 receiver=$2 port=$3 pairs=$4 seconds=$5 size=$6
shift 6
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:-}}}}
ranks=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-${SLURM_NTASKS:-}}}
if [ -z "$rank" ] || [ -z "$ranks" ]; then
  echo "incast: the launcher does not say which rank this is" >&2
  exit 2
fi
senders=$((ranks - 1))
[ "$rank" != 0 ] || echo "[incast of $senders] $pairs"
# shellcheck disable=SC2046 # a word a process
stop() { kill $(jobs -p) 2>/dev/null; }
trap 'stop; exit 143' HUP INT TERM
for q in $pairs; do
  first=$port
  port=$((port + senders))
  if [ "$rank" = 0 ]; then
    started=
    n=0
    while [ "$n" -lt "$senders" ]; do
      "$program" -F -p $((first + n)) -q "$q" -D "$seconds" -s "$size" --report_gbits "$@" \
        </dev/null >"receiver-$n.txt" 2>&1 &
      started="$started $!"
      n=$((n + 1))
    done
    n=0
    for pid in $started; do
      if ! wait "$pid"; then
        echo "incast: the receiver failed: $(tail -n 1 "receiver-$n.txt")" >&2
        cat "receiver-$n.txt" >&2
        stop 2>/dev/null
        exit 1
      fi
      n=$((n + 1))
    done
  else
    tries=0
    while :; do
      begin=$(date +%s)
      said=$("$program" -F -p $((first + rank - 1)) -q "$q" -D "$seconds" -s "$size" \
        --report_gbits "$@" "$receiver" 2>&1 </dev/null) && break
      tries=$((tries + 1))
      case $said in *"Couldn't connect to"*) ;; *) tries=300 ;; esac
      if [ "$tries" -ge 300 ]; then
        printf '%s\n' "$said" | sed "s|^|[incast $rank/$senders $q] |"
        exit 1
      fi
      sleep 0.2
    done
    printf 'begin %s\n%s\nend %s\n' "$begin" "$said" "$(date +%s)" |
      sed "s|^|[incast $rank/$senders $q] |"
  fi
done
"""


def command(request: Request) -> Program:
    """Return what every rank executes; the ranks are the receiver and its senders."""
    asked = request.parameters
    program = path_or(request, "ib_write_bw")
    argv = ["/bin/sh", "-c", SCRIPT, "incast", program]
    argv += [asked["receiver"], "{port}", " ".join(map(str, asked["queue_pairs"]))]
    argv += [str(asked["seconds"]), str(asked["size"])]
    for key, option in (("device", "-d"), ("gid_index", "-x")):
        if asked.get(key) is not None:
            argv += [option, str(asked[key])]
    return Program(tuple(argv), needs=(program,))


def cases(request: Request) -> Iterator[tuple[str, Case]]:
    """Return the sum and the fairness for each number of queue pairs, and every sender's share."""
    for pairs in request.parameters["queue_pairs"]:
        yield "throughput", Case.of(queue_pairs=pairs)
        yield "fairness", Case.of(queue_pairs=pairs)
        for sender in range(1, request.ranks):
            yield "sender", Case.of(queue_pairs=pairs, sender=sender)


def read(text: str) -> Reading:
    """Return sum, fairness and each sender's rate, for every number of queue pairs."""
    if "[incast " not in text:
        for mark in ("incast: ", "Unable to find the Infiniband/RoCE device", "not found"):
            if (at := text.find(mark)) >= 0:
                refuse(f"incast failed: {line_at(text, at).strip()[:160]!r}", line_of(text, at))
        refuse("no line of a sender: '[incast 1/3 4] ...'")
    said: dict[str, list[str]] = {}
    for who, line in _LINE.findall(text):
        said.setdefault(who, []).append(line)
    title = None
    if _BEGIN in text:
        title = _TITLE.match(text, once(text, _BEGIN, "the first line of an incast"))
    if sum(map(len, said.values())) + bool(title) != text.count("[incast "):
        refuse("a line of a sender is not whole", line_of(text, text.find("[incast ")))
    senders = {who.partition("/")[2].partition(" ")[0] for who in said}
    if len(senders) != 1:
        refuse(f"senders out of {' and '.join(sorted(senders))}: two outputs in one")
    count = int(senders.pop())
    if title and int(title[1]) != count:
        refuse(f"{title[1]} senders were to send, the lines are of {count}")
    done = dict.fromkeys(who.partition(" ")[2] for who in said)
    if title and set(title[2].split()) != done.keys():
        refuse(f"of {title[2]} queue pairs there are {' and '.join(sorted(done, key=int))}")
    complaints = COMPLAINTS.within(text)
    samples: list[Sample] = []
    guards: list[str] = []
    settings: dict[str, Scalar] = {}
    for pairs in map(int, done):
        spans, rates = [], []
        for sender in range(1, count + 1):
            who = f"{sender}/{count} {pairs}"
            if who not in said:
                refuse(f"sender {sender} of {count} is missing with {pairs} queue pairs")
            try:
                rate, span, own = _sender(said.pop(who), pairs, complaints)
            except ParseError as error:
                at = line_of(text, text.find(f"[incast {who}]"))
                refuse(f"sender {sender} with {pairs} queue pairs: {error.cause}", at)
            if settings.setdefault("size", own["size"]) != own["size"]:
                refuse(f"messages of {settings['size']} B and of {own['size']} B")
            rates.append(rate)
            spans.append(span)
        samples += _samples(pairs, rates)
        both = min(end for _, end in spans) - max(begin for begin, _ in spans)
        longest = max(end - begin for begin, end in spans)
        if both + 1 < _OVERLAP * longest:
            guards.append(f"with {pairs} queue pairs all senders sent for {max(both, 0)} s only")
    if said:
        refuse(f"a sender {next(iter(said)).partition(' ')[0]}")
    parameters = {"senders": count, **settings}
    return Reading(
        "incast", "not printed", parameters, count + 1, tuple(samples), {}, tuple(guards)
    )


def _sender(
    lines: list[str], pairs: int, complaints: Sequence[str]
) -> tuple[float, tuple[int, int], dict[str, Scalar]]:
    """Return one sender's rate in Gbit/s, when it began and ended, and the size of its messages."""
    text = "\n".join(lines)
    title, settings, at = heading(text, complaints)
    first, last = _SPAN.fullmatch(lines[0]), _SPAN.fullmatch(lines[-1])
    if not (first and last and first[1] == "begin" and last[1] == "end"):
        refuse("its beginning or its end is missing")
    once(text, "begin ", "its beginning")
    if title[1] != "RDMA_Write" or title[2] or title[3] != "BW":
        refuse(f"{title[0].strip()!r} is not RDMA_Write BW Test")
    own = parameters_of(settings, bidirectional=False)
    if own["queue_pairs"] != pairs:
        refuse(f"{pairs} queue pairs were asked for, it used {own['queue_pairs']}")
    unit, rows = bandwidth_rows(text, at)
    if unit != "Gb/sec" or len(rows) != 1:
        refuse(f"expected one row in Gb/sec, got {len(rows)} in {unit}")
    return rows[0][3], (int(first[2]), int(last[2])), {"size": rows[0][0]}


def _samples(pairs: int, rates: list[float]) -> list[Sample]:
    # Jain, Chiu, Hawe 1984: 1 if all have the same, 1/n if one has everything.
    fairness = sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))
    case = Case.of(queue_pairs=pairs)
    shares = [
        Sample("sender", Case.of(queue_pairs=pairs, sender=n), (rate,))
        for n, rate in enumerate(rates, 1)
    ]
    return [
        Sample("throughput", case, (sum(rates),)),
        Sample("fairness", case, (fairness,)),
        *shares,
    ]


def _pairs(value: object) -> list[int]:
    items = value if isinstance(value, list) else [value]
    found = [positive(item) for item in items]
    if not found or len(set(found)) != len(found):
        raise ValueError("write numbers of queue pairs, each once, such as [4, 16, 64]")
    return found


def _address(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w.:-]+", value):
        raise ValueError("write the host name or address of rank 0 that the senders reach")
    return value


BENCHMARK = tool(
    "incast",
    layer="network",
    summary="perftest: several senders write into one receiver at the same time",
    metrics=(
        Metric("throughput", "Gbit/s", "higher"),
        Metric("fairness", "share", "higher"),
        Metric("sender", "Gbit/s", "higher", margin=0.05),
    ),
    reader=read,
    marks=("[incast of ", "[incast 1/", "[incast 2/", "[incast 3/"),
    command=command,
    cases=cases,
    parameters={
        "receiver": Parameter("127.0.0.1", _address, "address of rank 0, the receiver"),
        "queue_pairs": Parameter([4, 16, 64], _pairs, "-q: queue pairs of each sender"),
        "seconds": Parameter(10, positive, "-D: how long, for each number of queue pairs"),
        "size": Parameter(65536, positive, "-s: bytes of a message"),
        "device": Parameter(None, device, "-d: the RDMA device on all hosts, such as mlx5_0"),
        "gid_index": Parameter(None, gid_index, "-x: which GID, for RoCE"),
    },
    ranks=4,
    program="ib_write_bw",
    get=GET,
    versions=VERSIONS,
    proof=(
        "every sender's table, whole, with the queue pairs and size asked for, size times message"
        " rate its rate; as many senders as ranks but one"
    ),
    means=(
        "`throughput` is the sum of the senders, Gbit = 10^9 bits; `fairness` is Jain's index, 1 if"
        " all get the same and 1/n if one gets all; senders that did not send together are told"
    ),
)
