"""ib_send_lat of perftest: needs an RDMA device on both sides."""

from paribus.benchmarks._perftest import perftest

BENCHMARK = perftest("ib_send_lat", "Send", "lat", "perftest: latency of sends and receives")
