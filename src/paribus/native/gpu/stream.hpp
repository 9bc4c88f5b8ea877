// Memory bandwidth of a GPU: copy, scale, add, triad and dot of doubles.
#pragma once

#include "device.hpp"

namespace paribus::gpu {

enum Op : int { copy_op, scale_op, add_op, triad_op, dot_op };
constexpr const char* op_names[] = {"copy", "scale", "add", "triad", "dot"};
constexpr double arrays_of[] = {2, 2, 3, 3, 2};  // that an operation reads and writes

// Small whole numbers, so that every result is exact.
__device__ inline double first_of(std::size_t i) { return static_cast<double>(i % 1024); }
__device__ inline double second_of(std::size_t i) { return static_cast<double>(i % 509); }

__global__ void fill_arrays(double* a, double* b, double* c, std::size_t n) {
    PARIBUS_EACH(i, n) {
        a[i] = first_of(i);
        b[i] = second_of(i);
        c[i] = -1;
    }
}
__global__ void copy_array(const double* a, const double*, double* c, std::size_t n) {
    PARIBUS_EACH(i, n) c[i] = a[i];
}
__global__ void scale_array(const double* a, const double*, double* c, std::size_t n) {
    PARIBUS_EACH(i, n) c[i] = 3 * a[i];
}
__global__ void add_arrays(const double* a, const double* b, double* c, std::size_t n) {
    PARIBUS_EACH(i, n) c[i] = a[i] + b[i];
}
__global__ void triad_arrays(const double* a, const double* b, double* c, std::size_t n) {
    PARIBUS_EACH(i, n) c[i] = a[i] + 3 * b[i];
}
// Each thread leaves its own sum: there are few of them beside the elements.
__global__ void dot_arrays(const double* a, const double* b, double* c, std::size_t n) {
    const std::size_t own = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    double sum = 0;
    PARIBUS_EACH(i, n) sum += a[i] * b[i];
    if (own < n) c[own] = sum;
}
__global__ void check_array(const double* c, std::size_t n, int op, unsigned* wrong) {
    PARIBUS_EACH(i, n) {
        const double a = first_of(i), b = second_of(i);
        double right = op == copy_op    ? a
                       : op == scale_op ? 3 * a
                       : op == add_op   ? a + b
                                        : a + 3 * b;
        if (op == dot_op) {
            right = 0;
            const std::size_t all = static_cast<std::size_t>(gridDim.x) * blockDim.x;
            for (std::size_t j = i; i < all && j < n; j += all) right += first_of(j) * second_of(j);
            if (i >= all) right = c[i];
        }
        if (c[i] != right) atomicAdd(wrong, 1u);
    }
}

struct StreamKernel {
    static constexpr Spec spec() {
        Spec spec = spec_of("gpu_stream", "Memory bandwidth of a GPU: five simple loops.", one_gpu);
        spec.metric = "bandwidth";
        spec.sizes = "1073741824";
        spec.least_size = sizeof(double);
        spec.element_size = sizeof(double);
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        for (int gpu = 0; gpu < count; ++gpu)
            for (const long bytes : session.arguments.bytes) {
                const auto size = static_cast<std::size_t>(bytes);
                const std::size_t n = size / sizeof(double);
                const Memory first(session, gpu, size), second(session, gpu, size),
                    third(session, gpu, size);
                double *const a = first.as<double>(), *const b = second.as<double>(),
                              *const c = third.as<double>();
                const Stream on(session, gpu);
                using Function = void (*)(const double*, const double*, double*, std::size_t);
                const Function functions[] = {copy_array, scale_array, add_arrays, triad_arrays,
                                              dot_arrays};
                for (int op = copy_op; op <= dot_op; ++op) {
                    const std::string where =
                        Object().add("gpu", gpu).add("op", op_names[op]).add("bytes", bytes).text();
                    const Function function = functions[op];
                    PARIBUS_ON_GPU(fill_arrays, blocks, threads, on.stream, a, b, c, n);
                    const Sampled found = sample(session, [&](long times) {
                        return on.seconds(times, [&] {
                            PARIBUS_ON_GPU(function, blocks, threads, on.stream, a, b, c, n);
                        });
                    });
                    corrupt(session, c, std::min(size, sizeof(double) * blocks * threads));
                    PARIBUS_CHECK(session, on, where, n, check_array, c, n, op);
                    keep(session, where, "bandwidth", "GB/s", found,
                         1e-9 * arrays_of[op] * static_cast<double>(bytes), false,
                         about(gpu).text());
                }
            }
    }
};

}  // namespace paribus::gpu
