"""osu_latency of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_latency",
    title="OSU MPI Latency Test",
    column="Latency(us)",
    layer="point to point",
    summary="OSU: half the round trip of a message, mean over iterations",
    metric=Metric("latency", "us", "lower", small_us=2.0),
)
