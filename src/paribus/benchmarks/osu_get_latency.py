"""osu_get_latency of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_get_latency",
    title="_Get Latency",
    layer="one-sided",
    summary="OSU: MPI_Get and its synchronisation, mean over iterations",
    metric=Metric("latency", "us", "lower", small_us=2.0),
    tail=False,
    ranks=2,
)
