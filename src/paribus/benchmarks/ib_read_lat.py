"""ib_read_lat of perftest: needs an RDMA device on both sides."""

from paribus.benchmarks._perftest import perftest

BENCHMARK = perftest(
    "ib_read_lat", "RDMA_Read", "lat", "perftest: latency of RDMA reads, the whole round trip"
)
