"""loader: the storm of opening many shared libraries from all ranks at once (docs/kernels.md)."""

from paribus.benchmarks._native import native
from paribus.benchmarks._parameters import positive
from paribus.model import Metric, Parameter

BENCHMARK = native(
    "loader",
    layer="start-up",
    summary="opening many shared libraries from all ranks at once, as Python applications do",
    metrics=(
        Metric("load", "ms", "lower", margin=0.05),
        Metric("first_call", "ms", "lower", margin=0.05),
        Metric("startup", "ms", "lower", margin=0.05),
    ),
    bytes=None,
    like=False,
    libraries=True,
    extra={
        "count": Parameter(100, positive, "shared libraries to open"),
        "functions": Parameter(50, positive, "functions in each of them"),
    },
)
