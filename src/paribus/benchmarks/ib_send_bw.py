"""ib_send_bw of perftest: needs an RDMA device on both sides."""

from paribus.benchmarks._perftest import perftest

BENCHMARK = perftest("ib_send_bw", "Send", "bw", "perftest: bandwidth of sends and receives")
