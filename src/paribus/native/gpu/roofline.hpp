// A GPU's roofline: operations per second at intensities from 1/16 to 64 operations per byte.
#pragma once

#include "device.hpp"

namespace paribus::gpu {

// A pair of elements is read, computed with and written: 4 sizes of an element in bytes. Of that
// many bytes times the intensity are the operations: a multiplication is one, with an addition two.
// The factor is 1 and the summand too, which the compiler cannot know, so results are exact.
template <class T>
struct Two {
    T x, y;
};
// A thread computes with this many pairs at once, in long straight runs: with fewer chains, or with
// a loop's counting between them, the units for float wait (35.6 instead of 57.8 TFLOP/s on an
// H100).
constexpr int at_once = 4;
constexpr int straight = 16;
template <int Pairs, class T>
__device__ inline void compute_with(Two<T>* pair, long operations, T factor, T summand) {
    const auto step = [&] {
#pragma unroll
        for (int k = 0; k < Pairs; ++k) {
            pair[k].x = pair[k].x * factor + summand;
            pair[k].y = pair[k].y * factor + summand;
        }
    };
#pragma unroll
    for (int k = 0; k < Pairs; ++k) {
        if (operations == 1) pair[k].x = pair[k].x * -factor;
        if (operations == 2) pair[k].x = pair[k].x * factor + summand;
    }
    const int steps = static_cast<int>(operations / 4);
    for (int left = steps / straight; left > 0; --left) {
#pragma unroll
        for (int i = 0; i < straight; ++i) step();
    }
    for (int left = steps % straight; left > 0; --left) step();
}
template <class T>
__global__ void compute_pairs(Two<T>* pairs, std::size_t n, long operations, T factor, T summand) {
    const std::size_t all = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    for (; i + (at_once - 1) * all < n; i += at_once * all) {
        Two<T> several[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k) several[k] = pairs[i + k * all];
        compute_with<at_once>(several, operations, factor, summand);
#pragma unroll
        for (int k = 0; k < at_once; ++k) pairs[i + k * all] = several[k];
    }
    for (; i < n; i += all) {
        Two<T> one = pairs[i];
        compute_with<1>(&one, operations, factor, summand);
        pairs[i] = one;
    }
}
template <class T>
__global__ void fill_pairs(Two<T>* pairs, std::size_t n) {
    PARIBUS_EACH(i, n) pairs[i] = {static_cast<T>(i % 64 + 1), static_cast<T>(i % 32 + 1)};
}
template <class T>
__global__ void check_pairs(const Two<T>* pairs, std::size_t n, long operations, long passes,
                            unsigned* wrong) {
    PARIBUS_EACH(i, n) {
        T x = static_cast<T>(i % 64 + 1), y = static_cast<T>(i % 32 + 1);
        if (operations == 1 && passes % 2 != 0) x = -x;
        if (operations == 2) x += static_cast<T>(passes);
        x += static_cast<T>(operations / 4 * passes);
        y += static_cast<T>(operations / 4 * passes);
        if (pairs[i].x != x || pairs[i].y != y) atomicAdd(wrong, 1u);
    }
}

struct RooflineKernel {
    static constexpr Spec spec() {
        Spec spec =
            spec_of("gpu_roofline", "Operations per second of a GPU by intensity.", one_gpu);
        spec.metric = "performance";
        spec.unit = "Gop/s";
        spec.sizes = "1073741824";
        spec.least_size = 32;
        spec.element_size = 32;
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        for (int gpu = 0; gpu < count; ++gpu) {
            of_type<float>(session, gpu, "float");
            of_type<double>(session, gpu, "double");
            of_type<int>(session, gpu, "int");
        }
    }

private:
    template <class T>
    static void of_type(Session& session, int gpu, const char* type) {
        for (const long bytes : session.arguments.bytes) {
            const auto size = static_cast<std::size_t>(bytes);
            const std::size_t n = size / sizeof(Two<T>);
            const Memory memory(session, gpu, size);
            const Stream on(session, gpu);
            auto* const pairs = memory.as<Two<T>>();
            for (double intensity = 1.0 / 16; intensity <= 64; intensity *= 2) {
                const auto operations = static_cast<long>(intensity * 4 * sizeof(T));
                const std::string where = Object()
                                              .add("gpu", gpu)
                                              .add("type", type)
                                              .add("intensity", intensity)
                                              .add("bytes", bytes)
                                              .text();
                const auto fill = fill_pairs<T>;
                const auto compute = compute_pairs<T>;
                const auto check = check_pairs<T>;
                long passes = 0;
                PARIBUS_ON_GPU(fill, blocks, threads, on.stream, pairs, n);
                const Sampled found = sample(session, [&](long times) {
                    // Sums of floats are exact below 2^24 only.
                    if ((passes + times) * std::max(1L, operations / 4) > 1 << 23) {
                        PARIBUS_ON_GPU(fill, blocks, threads, on.stream, pairs, n);
                        passes = 0;
                    }
                    passes += times;
                    return on.seconds(times, [&] {
                        PARIBUS_ON_GPU(compute, blocks, threads, on.stream, pairs, n, operations,
                                       static_cast<T>(1), static_cast<T>(1));
                    });
                });
                corrupt(session, pairs, size);
                PARIBUS_CHECK(session, on, where, n, check, pairs, n, operations, passes);
                keep(session, where, "performance", "Gop/s", found,
                     1e-9 * static_cast<double>(operations) * static_cast<double>(n), false,
                     about(gpu).text());
            }
        }
    }
};

}  // namespace paribus::gpu
