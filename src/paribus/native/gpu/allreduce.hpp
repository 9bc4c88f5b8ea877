// The sum of a vector over all GPUs of a node, at each of them, by NCCL or RCCL.
#pragma once

#include <memory>

#include "device.hpp"

namespace paribus::gpu {

// The functions of NCCL 2, which RCCL has too.
class Nccl {
public:
    explicit Nccl(Session& session)
        : library_(session, {"libnccl.so.2", "libnccl.so", "librccl.so.1", "librccl.so"},
                   "neither libnccl.so.2 nor librccl.so.1 is found") {
        library_.find(session, "ncclCommInitAll", init_all);
        library_.find(session, "ncclCommDestroy", destroy);
        library_.find(session, "ncclGroupStart", group_start);
        library_.find(session, "ncclGroupEnd", group_end);
        library_.find(session, "ncclAllReduce", all_reduce);
        library_.find(session, "ncclGetErrorString", error_string);
        library_.find(session, "ncclGetVersion", get_version);
    }
    void must(Session& session, int error) const {
        if (error != 0) session.give_up_if(std::string("NCCL: ") + error_string(error));
    }
    static constexpr int float_type = 7, sum = 0;  // ncclFloat32, ncclSum
    int (*init_all)(void**, int, const int*) = nullptr;
    int (*destroy)(void*) = nullptr;
    int (*group_start)() = nullptr;
    int (*group_end)() = nullptr;
    int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
    const char* (*error_string)(int) = nullptr;
    int (*get_version)(int*) = nullptr;

private:
    Library library_;
};

// Small whole numbers, as term() of common/check.hpp has them: their sum is exact in any order.
__device__ inline float term_of(std::size_t i, int gpu) {
    return static_cast<float>((i + static_cast<unsigned>(gpu) * 7) % 16 + 1);
}
__global__ void fill_terms_of(float* terms, float* sums, std::size_t n, int gpu) {
    PARIBUS_EACH(i, n) {
        terms[i] = term_of(i, gpu);
        sums[i] = -1;
    }
}
__global__ void check_sums(const float* sums, std::size_t n, int gpus, unsigned* wrong) {
    PARIBUS_EACH(i, n) {
        float right = 0;
        for (int gpu = 0; gpu < gpus; ++gpu) right += term_of(i, gpu);
        if (sums[i] != right) atomicAdd(wrong, 1u);
    }
}

struct AllreduceKernel {
    static constexpr Spec spec() {
        Spec spec =
            spec_of("gpu_allreduce", "Sum of a vector over GPUs, by NCCL or RCCL.", several_gpus);
        spec.metric = "bus_bandwidth";
        spec.sizes = "1024,65536,1048576,134217728";
        spec.least_size = sizeof(float);
        spec.element_size = sizeof(float);
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        const Nccl nccl(session);
        std::vector<void*> comms(static_cast<std::size_t>(count));
        nccl.must(session, nccl.init_all(comms.data(), count, nullptr));
        int version = 0;
        nccl.must(session, nccl.get_version(&version));
        for (const long bytes : session.arguments.bytes)
            of_size(session, nccl, comms, bytes, about_all(count).add("nccl", version).text());
        for (void* comm : comms) nccl.destroy(comm);
    }

private:
    struct Part {
        Part(Session& session, int gpu, std::size_t bytes)
            : on(session, gpu), out(session, gpu, bytes), in(session, gpu, bytes) {}
        Stream on;
        Memory out, in;
    };
    static void of_size(Session& session, const Nccl& nccl, const std::vector<void*>& comms,
                        long bytes, const std::string& more) {
        const int count = static_cast<int>(comms.size());
        const std::size_t n = static_cast<std::size_t>(bytes) / sizeof(float);
        const std::string where = Object().add("gpus", count).add("bytes", bytes).text();
        std::vector<std::unique_ptr<Part>> parts;
        for (int gpu = 0; gpu < count; ++gpu) {
            parts.push_back(std::make_unique<Part>(session, gpu, static_cast<std::size_t>(bytes)));
            const Part& own = *parts.back();
            PARIBUS_ON_GPU(fill_terms_of, blocks, threads, own.on.stream, own.out.as<float>(),
                           own.in.as<float>(), n, gpu);
            own.on.wait();
        }
        const auto reduce = [&] {
            nccl.must(session, nccl.group_start());
            for (std::size_t i = 0; i < parts.size(); ++i)
                nccl.must(session, nccl.all_reduce(parts[i]->out.as(), parts[i]->in.as(), n,
                                                   Nccl::float_type, Nccl::sum, comms[i],
                                                   parts[i]->on.stream));
            nccl.must(session, nccl.group_end());
        };
        const Sampled found = sample(session, [&](long times) {
            const std::int64_t start = now_ns();
            for (long i = 0; i < times; ++i) {
                reduce();
                session.delay();
            }
            for (const auto& one : parts) one->on.wait();
            return 1e-9 * static_cast<double>(now_ns() - start);
        });
        for (const auto& one : parts) {
            must(session, cudaSetDevice(one->on.gpu), "a GPU cannot be used");
            if (one == parts.back())
                corrupt(session, one->in.as(), static_cast<std::size_t>(bytes));
            PARIBUS_CHECK(session, one->on, where, n, check_sums, one->in.as<float>(), n, count);
        }
        // What a ring moves over each link, as nccl-tests define it: 2 (n - 1) / n of the vector.
        const double moved = 2.0 * (count - 1) / count;
        keep(session, where, "bus_bandwidth", "GB/s", found,
             1e-9 * moved * static_cast<double>(bytes), false, more);
        keep(session, where, "time", "us", found, 1e6, true);
    }
};

}  // namespace paribus::gpu
