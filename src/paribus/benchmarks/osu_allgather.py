"""osu_allgather of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_allgather",
    title="Allgather Latency",
    layer="collective",
    summary="OSU: every rank's message to every rank, mean over ranks and iterations",
    metric=Metric("time", "us", "lower", margin=0.05),
)
