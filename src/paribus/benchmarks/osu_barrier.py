"""osu_barrier of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_barrier",
    title="Barrier Latency",
    layer="collective",
    summary="OSU: a barrier, mean over ranks and iterations",
    metric=Metric("time", "us", "lower", margin=0.05),
    sized=False,
)
