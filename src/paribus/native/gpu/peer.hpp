// Copies between GPUs: of every pair one way and both ways, and of all pairs at once.
#pragma once

#include <memory>

#include "copy.hpp"

namespace paribus::gpu {

struct PeerKernel {
    static constexpr Spec spec() {
        Spec spec =
            spec_of("gpu_peer", "Copies between GPUs: each pair, both ways, all.", several_gpus);
        spec.metric = "bandwidth";
        spec.sizes = "8,67108864";
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        for (const long bytes : session.arguments.bytes) {
            std::vector<Way> ways;
            for (int from = 0; from < count; ++from)
                for (int to = 0; to < count; ++to)
                    if (from != to)
                        ways.emplace_back(session, from, to, static_cast<std::size_t>(bytes));
            for (const Way& one : ways) {
                latency(session, one);
                bandwidth(session, {&one}, one.where().add("way", "one").add("bytes", bytes),
                          bytes);
            }
            for (const Way& one : ways)
                for (const Way& back : ways)
                    if (one.from < one.to && back.from == one.to && back.to == one.from)
                        bandwidth(session, {&one, &back},
                                  one.where().add("way", "both").add("bytes", bytes), bytes);
            std::vector<const Way*> all;
            for (const Way& one : ways) all.push_back(&one);
            bandwidth(session, all, Object().add("way", "all").add("bytes", bytes), bytes,
                      about_all(count));
        }
    }

private:
    // From one GPU to another, in a stream of the sender.
    struct Way {
        Way(Session& session, int from, int to, std::size_t bytes)
            : from(from),
              to(to),
              bytes(bytes),
              on(std::make_unique<Stream>(session, from)),
              check_on(std::make_unique<Stream>(session, to)),
              out(std::make_unique<Memory>(session, from, bytes)),
              in(std::make_unique<Memory>(session, to, bytes)) {
            int can = 0;
            must(session, cudaDeviceCanAccessPeer(&can, from, to), "no peer");
            direct = can != 0;
            must(session, cudaSetDevice(from), "a GPU cannot be used");
            if (direct) {
                const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
                if (error == cudaErrorPeerAccessAlreadyEnabled) (void)cudaGetLastError();
                else must(session, error, "no access between GPUs");
            }
        }
        Object where() const { return Object().add("from", from).add("to", to); }
        unsigned salt() const { return static_cast<unsigned>(from * 64 + to + 1); }
        void copy(Session& session, std::size_t n) const {
            must(session, cudaMemcpyPeerAsync(in->as(), to, out->as(), from, n, on->stream),
                 "no copy");
        }
        int from, to;
        std::size_t bytes;
        bool direct = false;
        std::unique_ptr<Stream> on, check_on;
        std::unique_ptr<Memory> out, in;
    };

    static void prepare(Session& session, const Way& one) {
        must(session, cudaSetDevice(one.from), "a GPU cannot be used");
        PARIBUS_ON_GPU(fill_bytes, blocks, threads, one.on->stream, one.out->as(), one.bytes,
                       one.salt());
        one.on->wait();
        must(session, cudaSetDevice(one.to), "a GPU cannot be used");
        must(session, cudaMemset(one.in->as(), 0, one.bytes), "no memory");
        must(session, cudaDeviceSynchronize(), "the GPU failed");
    }
    static void check(Session& session, const Way& one, const std::string& where, std::size_t n) {
        must(session, cudaSetDevice(one.to), "a GPU cannot be used");
        corrupt(session, one.in->as(), n);
        PARIBUS_CHECK(session, *one.check_on, where, n, check_bytes, one.in->as(), n, one.salt());
    }

    // One copy and the wait for it, on the host's clock.
    static void latency(Session& session, const Way& one) {
        const std::size_t n = one.bytes;
        const std::string where =
            one.where().add("way", "one").add("bytes", static_cast<long>(n)).text();
        prepare(session, one);
        const Sampled found = sample(session, [&](long times) {
            const std::int64_t start = now_ns();
            for (long i = 0; i < times; ++i) {
                one.copy(session, n);
                one.on->wait();
                session.delay();
            }
            return 1e-9 * static_cast<double>(now_ns() - start);
        });
        check(session, one, where, n);
        keep(session, where, "latency", "us", found, 1e6, true,
             Object().add("direct", one.direct).text());
    }

    // Of all `ways` together, from the start of the first to the end of the last on the host's
    // clock.
    static void bandwidth(Session& session, const std::vector<const Way*>& ways, Object at,
                          long bytes, Object said = {}) {
        const std::string where = at.text();
        for (const Way* one : ways) prepare(session, *one);
        const Sampled found = sample(session, [&](long times) {
            const std::int64_t start = now_ns();
            for (long i = 0; i < times; ++i)
                for (const Way* one : ways) {
                    one->copy(session, one->bytes);
                    session.delay();
                }
            for (const Way* one : ways) one->on->wait();
            return 1e-9 * static_cast<double>(now_ns() - start);
        });
        bool direct = true;
        for (const Way* one : ways) {
            check(session, *one, where, one->bytes);
            direct = direct && one->direct;
        }
        keep(session, where, "bandwidth", "GB/s", found,
             1e-9 * static_cast<double>(bytes) * static_cast<double>(ways.size()), false,
             said.add("direct", direct).text());
    }
};

}  // namespace paribus::gpu
