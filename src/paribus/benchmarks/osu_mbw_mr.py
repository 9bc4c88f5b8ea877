"""osu_mbw_mr of the OSU Micro-Benchmarks, where the site has them built."""

from paribus.benchmarks._osu import osu
from paribus.model import Metric

BENCHMARK = osu(
    "osu_mbw_mr",
    title="Multiple Bandwidth / Message Rate",
    layer="point to point",
    summary="OSU: messages per second of all pairs of ranks at once, summed",
    metric=Metric("message_rate", "msg/s", "higher"),
    tail=False,
    column="Messages/s",
)
