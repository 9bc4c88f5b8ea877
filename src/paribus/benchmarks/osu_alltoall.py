"""osu_alltoall of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_alltoall",
    title="All-to-All Personalized Exchange Latency",
    layer="collective",
    summary="OSU: a message from each rank to each rank, mean over ranks and iterations",
    metric=Metric("time", "us", "lower", margin=0.05),
)
