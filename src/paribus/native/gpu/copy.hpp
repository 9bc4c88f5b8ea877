// Copies between a host and a GPU, both ways, from memory that the GPU reaches and from usual
// memory. All of it is written before: pages that never were are one page of zeros, which stays in
// the caches.
#pragma once

#include "device.hpp"

namespace paribus::gpu {

__device__ inline unsigned char byte_of(std::size_t i, unsigned salt) {
    return static_cast<unsigned char>(i * 31 + (i >> 8) * 7 + salt * 13 + 1);
}
__global__ void fill_bytes(unsigned char* data, std::size_t n, unsigned salt) {
    PARIBUS_EACH(i, n) data[i] = byte_of(i, salt);
}
__global__ void check_bytes(const unsigned char* data, std::size_t n, unsigned salt,
                            unsigned* wrong) {
    PARIBUS_EACH(i, n) if (data[i] != byte_of(i, salt)) atomicAdd(wrong, 1u);
}

// Of both, `time` is one copy and the wait for it, on the host's clock; `bandwidth` is of copies
// one after the other, on the GPU's.
struct CopyKernel {
    static constexpr Spec spec() {
        Spec spec = spec_of("gpu_copy", "Copies between host and GPU, both ways.", one_gpu);
        spec.metric = "bandwidth";
        spec.sizes = "8,4096,65536,1048576,67108864";
        spec.buffers = 2;
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        for (int gpu = 0; gpu < count; ++gpu)
            for (const char* memory : {"pinned", "pageable"})
                for (const char* way : {"to", "from"})
                    for (const long bytes : session.arguments.bytes)
                        one(session, gpu, memory, way, bytes);
    }

private:
    static void one(Session& session, int gpu, const std::string& kind, const std::string& way,
                    long bytes) {
        const auto size = static_cast<std::size_t>(bytes);
        const std::string where =
            Object().add("gpu", gpu).add("memory", kind).add("way", way).add("bytes", bytes).text();
        const Memory there(session, gpu, size),
            pinned(session, gpu, kind == "pinned" ? size : 1, true);
        const Buffer usual(kind == "pinned" ? 1 : size);
        session.give_up_if(usual.data ? "" : "no memory left at " + where);
        unsigned char* const here = kind == "pinned" ? pinned.as() : usual.data;
        const Stream on(session, gpu);
        const bool to = way == "to";
        const auto copy = [&] {
            must(session,
                 to ? cudaMemcpyAsync(there.as(), here, size, cudaMemcpyHostToDevice, on.stream)
                    : cudaMemcpyAsync(here, there.as(), size, cudaMemcpyDeviceToHost, on.stream),
                 "no copy");
        };
        // The pattern of byte_of() on the host is that of common/check.hpp without sender and
        // receiver.
        const unsigned salt = to ? 1 : 2;
        if (to) fill(here, size, 0, 0, salt);
        else PARIBUS_ON_GPU(fill_bytes, blocks, threads, on.stream, there.as(), size, salt);
        if (to) must(session, cudaMemset(there.as(), 0, size), "no memory");
        else poison(here, size, 0, 0, salt);
        on.wait();
        const Sampled time = sample(session, [&](long times) {
            const std::int64_t start = now_ns();
            for (long i = 0; i < times; ++i) {
                copy();
                on.wait();
                session.delay();
            }
            return 1e-9 * static_cast<double>(now_ns() - start);
        });
        const Sampled flow = sample(session, [&](long times) { return on.seconds(times, copy); });
        if (to) {
            corrupt(session, there.as(), size);
            PARIBUS_CHECK(session, on, where, size, check_bytes, there.as(), size, salt);
        } else {
            session.corrupt(here, size);
            session.verify(where, first_wrong(here, size, 0, 0, salt), size);
        }
        keep(session, where, "time", "us", time, 1e6, true);
        keep(session, where, "bandwidth", "GB/s", flow, 1e-9 * static_cast<double>(bytes), false,
             about(gpu).text());
    }
};

}  // namespace paribus::gpu
