"""osu_latency of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_latency",
    title="Latency",
    layer="point to point",
    summary="OSU: half the round trip of a message, mean over iterations",
    metric=Metric("latency", "us", "lower", small_us=2.0),
    ranks=2,
)
