"""osu_bibw of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_bibw",
    title="Bi-Directional Bandwidth",
    layer="point to point",
    summary="OSU: windows of 64 messages in both directions at once, summed",
    metric=Metric("bandwidth", "MB/s", "higher"),
    tail=False,
    ranks=2,
)
