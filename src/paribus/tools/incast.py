"""Incast: several hosts write into one at the same time, with perftest's ib_write_bw.

Rank 0 receives, every other rank sends; each executes the script below. Rank 0 starts an
ib_write_bw for each sender, on ports that follow each other, and when all have ended those for the
next number of queue pairs. A sender tries until its receiver is there, so all begin together.

Each line of a sender has its number, so lines may come in any order; rank 0 first prints how many
senders there are, and the numbers of queue pairs. Two things let lines of senders run into each
other, and are left out: the addresses of queue pairs, since those of 64 are more than a launcher
reads at once; and tabs, at which a terminal may stop, which become blanks.
"""

from __future__ import annotations

from collections.abc import Iterator

from paribus.benchmarks.parameters import address, positive, several
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.perftest import DEVICE, GET, OF_DEVICE, device
from paribus.tools.readers.incast import READER

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
tab=$(printf '\t')
[ "$rank" != 0 ] || echo "[incast of $senders] $pairs"
# shellcheck disable=SC2046 # a word a process
stop() { kill $(jobs -p) 2>/dev/null; }
trap 'stop; exit 143' HUP INT TERM
numbered() { # in one piece: ranks may have a terminal, to which sed writes 1024 bytes at once
  sed -e '/ address: /d' -e '/^ GID: /d' -e "s|$tab|  |g" \
    -e "s|^|[incast $rank/$senders $q] |" | cat
}
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
        printf '%s\n' "$said" | numbered
        exit 1
      fi
      sleep 0.2
    done
    printf 'begin %s\n%s\nend %s\n' "$begin" "$said" "$(date +%s)" | numbered
  fi
done
"""


def command(request: Request) -> Program:
    """Return the script that every rank executes: the receiver, and its senders."""
    asked = request.parameters
    program = path_or(request, "ib_write_bw")
    argv = ["/bin/sh", "-c", SCRIPT, "incast", program]
    argv += [asked["receiver"] or "{first}", "{port}", " ".join(map(str, asked["queue_pairs"]))]
    argv += [str(asked["seconds"]), str(asked["size"])]
    return Program((*argv, *options(request, DEVICE)), needs=(program,))


def cases(request: Request) -> Iterator[tuple[str, Case]]:
    """Return sum, fairness and every sender's rate for each number of queue pairs."""
    for pairs in request.parameters["queue_pairs"]:
        yield "throughput", Case.of(queue_pairs=pairs)
        yield "fairness", Case.of(queue_pairs=pairs)
        for sender in range(1, request.ranks):
            yield "sender", Case.of(queue_pairs=pairs, sender=sender)


def _pairs(value: object) -> list[int]:
    """Return numbers of queue pairs, each once; raises ValueError for anything else."""
    return several(value, "write numbers of queue pairs, each once, such as [4, 16, 64]")


BENCHMARK = tool(
    READER,
    layer="network",
    summary="perftest: several senders write into one receiver at the same time",
    metrics=(
        Metric("throughput", "Gbit/s", "higher"),
        Metric("fairness", "share", "higher"),
        Metric("sender", "Gbit/s", "higher", margin=0.05),
    ),
    command=command,
    cases=cases,
    parameters={
        "receiver": Parameter(None, address, "address of rank 0, if its host's name is none"),
        "queue_pairs": Parameter([4, 16, 64], _pairs, "-q: queue pairs of each sender"),
        "seconds": Parameter(10, positive, "-D: how long, for each number of queue pairs"),
        "size": Parameter(65536, positive, "-s: bytes of a message"),
        "device": Parameter(None, device, "-d: the RDMA device on all hosts, such as mlx5_0"),
        **OF_DEVICE,
    },
    ranks=4,
    program="ib_write_bw",
    get=GET,
)
