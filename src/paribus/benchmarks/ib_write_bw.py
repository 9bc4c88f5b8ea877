"""ib_write_bw of perftest: needs an RDMA device on both sides."""

from paribus.benchmarks._perftest import perftest

BENCHMARK = perftest("ib_write_bw", "RDMA_Write", "bw", "perftest: bandwidth of RDMA writes")
