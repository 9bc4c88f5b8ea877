// A GPU's roofline: operations per second at intensities from 1/16 to 64 operations per byte.
#pragma once

#if defined(__HIPCC__)
#include <hip/hip_fp16.h>
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <cstring>

#include "device.hpp"

namespace paribus::gpu {

// What an element is: of half precision and bfloat16 two together, for only so are their units
// filled. `architecture`: code for an older one of NVIDIA's (53 is 5.3) computes with floats.
template <class T>
struct Element {
    static constexpr long lanes = 1;
    static constexpr int architecture = 0;
    static constexpr long exact = 1 << 23;  // sums of floats are, below 2^24
    static __device__ T of(double x) { return static_cast<T>(x); }
    static __device__ T times(T x, T factor) { return x * factor; }
    static __device__ T fused(T x, T factor, T summand) { return x * factor + summand; }
    static __device__ bool is(T x, double right) { return x == of(right); }
};
template <>
struct Element<__half2> {
    static constexpr long lanes = 2;
    static constexpr int architecture = 53;
    static constexpr long exact = 1 << 10;
    static __device__ __half2 of(double x) { return __float2half2_rn(static_cast<float>(x)); }
    static __device__ __half2 times(__half2 x, __half2 factor) { return __hmul2(x, factor); }
    static __device__ __half2 fused(__half2 x, __half2 factor, __half2 summand) {
        return __hfma2(x, factor, summand);
    }
    // Adding 1 ends at 2048: the next number is 2050, and a tie goes to the even one.
    static __device__ bool is(__half2 x, double right) {
        const auto least = static_cast<float>(right < 2048 ? right : 2048);
        return __low2float(x) == least && __high2float(x) == least;
    }
};
#if !defined(__HIPCC__)  // whose functions of bfloat16 convert to float and back
template <>
struct Element<__nv_bfloat162> {
    static constexpr long lanes = 2;
    static constexpr int architecture = 80;
    static constexpr long exact = 1 << 7;
    static __device__ __nv_bfloat162 of(double x) {
        return __float2bfloat162_rn(static_cast<float>(x));
    }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    static __device__ __nv_bfloat162 times(__nv_bfloat162 x, __nv_bfloat162 factor) {
        return __hmul2(x, factor);
    }
    static __device__ __nv_bfloat162 fused(__nv_bfloat162 x, __nv_bfloat162 factor,
                                           __nv_bfloat162 summand) {
        return __hfma2(x, factor, summand);
    }
#else  // compiled, but never executed
    static __device__ __nv_bfloat162 times(__nv_bfloat162 x, __nv_bfloat162) { return x; }
    static __device__ __nv_bfloat162 fused(__nv_bfloat162 x, __nv_bfloat162, __nv_bfloat162) {
        return x;
    }
#endif
    // Adding 1 ends at 256: the next number is 258, and a tie goes to the even one.
    static __device__ bool is(__nv_bfloat162 x, double right) {
        const auto least = static_cast<float>(right < 256 ? right : 256);
        return __low2float(x) == least && __high2float(x) == least;
    }
};
#endif

// A pair of elements is read, computed with and written: 4 sizes of an element in bytes. Of that
// many bytes times the intensity are the operations: a multiplication is one, with an addition two.
// The factor is 1 and the summand too, which the compiler cannot know, so results are exact. An
// element of two does two operations at once: `operations` counts them as one.
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
__device__ inline void compute_with(Two<T>* pair, long operations, T factor, T summand, T minus) {
    using E = Element<T>;
    const auto step = [&] {
#pragma unroll
        for (int k = 0; k < Pairs; ++k) {
            pair[k].x = E::fused(pair[k].x, factor, summand);
            pair[k].y = E::fused(pair[k].y, factor, summand);
        }
    };
#pragma unroll
    for (int k = 0; k < Pairs; ++k) {
        if (operations == 1) pair[k].x = E::times(pair[k].x, minus);
        if (operations == 2) pair[k].x = E::fused(pair[k].x, factor, summand);
    }
    const int steps = static_cast<int>(operations / 4);
    for (int left = steps / straight; left > 0; --left) {
#pragma unroll
        for (int i = 0; i < straight; ++i) step();
    }
    for (int left = steps % straight; left > 0; --left) step();
}
template <class T>
__global__ void compute_pairs(Two<T>* pairs, std::size_t n, long operations, int one, int also) {
    const T factor = Element<T>::of(one), minus = Element<T>::of(-one);
    const T summand = Element<T>::of(also);
    const std::size_t all = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    for (; i + (at_once - 1) * all < n; i += at_once * all) {
        Two<T> several[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k) several[k] = pairs[i + k * all];
        compute_with<at_once>(several, operations, factor, summand, minus);
#pragma unroll
        for (int k = 0; k < at_once; ++k) pairs[i + k * all] = several[k];
    }
    for (; i < n; i += all) {
        Two<T> last = pairs[i];
        compute_with<1>(&last, operations, factor, summand, minus);
        pairs[i] = last;
    }
}
template <class T>
__global__ void fill_pairs(Two<T>* pairs, std::size_t n) {
    using E = Element<T>;
    PARIBUS_EACH(i, n)
    pairs[i] = {E::of(static_cast<double>(i % 64 + 1)), E::of(static_cast<double>(i % 32 + 1))};
}
template <class T>
__global__ void check_pairs(const Two<T>* pairs, std::size_t n, long operations, long passes,
                            unsigned* wrong) {
    PARIBUS_EACH(i, n) {
        double x = static_cast<double>(i % 64 + 1), y = static_cast<double>(i % 32 + 1);
        if (operations == 1 && passes % 2 != 0) x = -x;
        if (operations == 2) x += static_cast<double>(passes);
        x += static_cast<double>(operations / 4 * passes);
        y += static_cast<double>(operations / 4 * passes);
        if (!Element<T>::is(pairs[i].x, x) || !Element<T>::is(pairs[i].y, y)) atomicAdd(wrong, 1u);
    }
}

constexpr Option roofline_options[] = {{"gpus", "1", "how many, each alone", 1, 64},
                                       {"type",
                                        "usual",
                                        "one alone, or the usual four: without bfloat16",
                                        0,
                                        0,
                                        false,
                                        {"usual", "float", "double", "int", "half", "bfloat16"}},
                                       {}};

struct RooflineKernel {
    static constexpr Spec spec() {
        Spec spec = spec_of("gpu_roofline", "Operations per second of a GPU by intensity.",
                            roofline_options);
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
            of_type<__half2>(session, gpu, "half");
#if !defined(__HIPCC__)
            of_type<__nv_bfloat162>(session, gpu, "bfloat16");
#else
            if (session.arguments.text.at("type") == "bfloat16")
                session.refuse("--type bfloat16: AMD's GPUs convert it to float and back");
#endif
        }
    }

private:
    template <class T>
    static void of_type(Session& session, int gpu, const char* type) {
        const std::string& asked = session.arguments.text.at("type");
        const bool usual = asked == "usual" && std::strcmp(type, "bfloat16") != 0;
        if (asked != type && !usual) return;
#if !defined(__HIPCC__)
        cudaFuncAttributes code{};
        must(session, cudaSetDevice(gpu), "a GPU cannot be used");
        must(session, cudaFuncGetAttributes(&code, compute_pairs<T>), "no code for this GPU");
        if (code.ptxVersion < Element<T>::architecture)
            session.refuse(std::string(type) + " needs a GPU of compute capability " +
                           std::to_string(Element<T>::architecture / 10) + "." +
                           std::to_string(Element<T>::architecture % 10) +
                           ", and a compiler that knows it");
#endif
        for (const long bytes : session.arguments.bytes) {
            const auto size = static_cast<std::size_t>(bytes);
            const std::size_t n = size / sizeof(Two<T>);
            const Memory memory(session, gpu, size);
            const Stream on(session, gpu);
            auto* const pairs = memory.as<Two<T>>();
            for (double intensity = 1.0 / 16; intensity <= 64; intensity *= 2) {
                const auto lanes = Element<T>::lanes;
                const auto operations = static_cast<long>(intensity * 4 * sizeof(T)) / lanes;
                if (operations == 0) continue;  // an operation of two together is at 1/8
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
                    if ((passes + times) * std::max(1L, operations / 4) > Element<T>::exact) {
                        PARIBUS_ON_GPU(fill, blocks, threads, on.stream, pairs, n);
                        passes = 0;
                    }
                    passes += times;
                    return on.seconds(times, [&] {
                        PARIBUS_ON_GPU(compute, blocks, threads, on.stream, pairs, n, operations, 1,
                                       1);
                    });
                });
                corrupt(session, pairs, size);
                PARIBUS_CHECK(session, on, where, n, check, pairs, n, operations, passes);
                keep(session, where, "performance", "Gop/s", found,
                     1e-9 * static_cast<double>(lanes * operations) * static_cast<double>(n), false,
                     about(gpu).text());
            }
        }
    }
};

}  // namespace paribus::gpu
