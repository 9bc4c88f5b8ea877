"""osu_multi_lat of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_multi_lat",
    title="Multi Latency",
    layer="point to point",
    summary="OSU: half the round trip of a message, mean over pairs of ranks that work at once",
    metric=Metric("latency", "us", "lower", small_us=2.0),
)
