// How long a GPU's smallest piece of work takes: one that is waited for, and one of many.
#pragma once

#include "device.hpp"

namespace paribus::gpu {

__global__ void count_one(unsigned* ticks) { *ticks += 1; }
__global__ void check_count(const unsigned* ticks, unsigned right, unsigned* wrong) {
    PARIBUS_EACH(i, 1) if (*ticks != right) atomicAdd(wrong, 1u);
}

// Both are on the host's clock: `time` is one launch and the wait for it, `issue` is one of many
// that are waited for together.
struct LatencyKernel {
    static constexpr Spec spec() {
        Spec spec = spec_of("gpu_latency", "The launch of a GPU's smallest work.", one_gpu);
        spec.metric = "time";
        spec.unit = "us";
        spec.sizes = nullptr;
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        for (int gpu = 0; gpu < count; ++gpu) {
            const std::string where = Object().add("gpu", gpu).text();
            const Memory memory(session, gpu, sizeof(unsigned));
            unsigned* const ticks = memory.as<unsigned>();
            const Stream on(session, gpu);
            unsigned launched = 0;
            must(session, cudaMemset(ticks, 0, sizeof *ticks), "no memory");
            const auto timed = [&](bool each) {
                return sample(session, [&](long times) {
                    must(session, cudaSetDevice(gpu), "a GPU cannot be used");
                    const std::int64_t start = now_ns();
                    for (long i = 0; i < times; ++i) {
                        PARIBUS_ON_GPU(count_one, 1, 1, on.stream, ticks);
                        if (each) on.wait();
                        session.delay();
                    }
                    on.wait();
                    launched += static_cast<unsigned>(times);
                    return 1e-9 * static_cast<double>(now_ns() - start);
                });
            };
            const Sampled time = timed(true), issue = timed(false);
            must(session, cudaGetLastError(), "the GPU did not take its work");
            corrupt(session, ticks, sizeof *ticks);
            PARIBUS_CHECK(session, on, where, 1, check_count, ticks, launched);
            keep(session, where, "time", "us", time, 1e6, true);
            keep(session, where, "issue", "us", issue, 1e6, true, about(gpu).text());
        }
    }
};

}  // namespace paribus::gpu
