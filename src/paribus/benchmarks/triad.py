"""triad: memory bandwidth of a[i] = b[i] + s * c[i], all ranks at once (docs/kernels.md)."""

from paribus.benchmarks._native import native
from paribus.model import Metric

# STREAM's rule asks for arrays of four times the last-level cache; 64 MiB holds up to 16 MiB per
# rank. Larger caches: set `bytes`.
BENCHMARK = native(
    "triad",
    layer="memory",
    summary="memory bandwidth of a[i] = b[i] + s * c[i], all ranks at once, summed",
    metrics=(Metric("bandwidth", "GB/s", "higher"),),
    bytes="64 MiB",
    like=False,
)
