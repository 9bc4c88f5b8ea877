"""osu_allreduce of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_allreduce",
    title="Allreduce Latency",
    layer="collective",
    summary="OSU: the sum of a vector at every rank, mean over ranks and iterations",
    metric=Metric("time", "us", "lower", margin=0.05),
)
