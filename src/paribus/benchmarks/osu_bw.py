"""osu_bw of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_bw",
    title="Bandwidth",
    layer="point to point",
    summary="OSU: windows of 64 messages from rank 0 to rank 1",
    metric=Metric("bandwidth", "MB/s", "higher"),
    tail=False,
    ranks=2,
)
