"""ib_write_lat of perftest: needs an RDMA device on both sides."""

from paribus.benchmarks._perftest import perftest

BENCHMARK = perftest("ib_write_lat", "RDMA_Write", "lat", "perftest: latency of RDMA writes")
