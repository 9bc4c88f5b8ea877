"""ib_read_bw of perftest: needs an RDMA device on both sides."""

from paribus.benchmarks._perftest import perftest

BENCHMARK = perftest("ib_read_bw", "RDMA_Read", "bw", "perftest: bandwidth of RDMA reads")
