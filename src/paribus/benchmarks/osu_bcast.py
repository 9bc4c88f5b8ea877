"""osu_bcast of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_bcast",
    title="Broadcast Latency",
    layer="collective",
    summary="OSU: a message from rank 0 to all, mean over ranks and iterations",
    metric=Metric("time", "us", "lower", margin=0.05),
)
