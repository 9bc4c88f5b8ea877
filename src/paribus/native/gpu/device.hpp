// One source for CUDA and HIP: CUDA's names, and what HIP calls them. Errors end the launch with a
// sentence; a program is one process, which uses as many GPUs as it is asked to.
#pragma once

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define cudaDeviceCanAccessPeer hipDeviceCanAccessPeer
#define cudaDeviceEnablePeerAccess hipDeviceEnablePeerAccess
#define cudaDeviceGetPCIBusId hipDeviceGetPCIBusId
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaDriverGetVersion hipDriverGetVersion
#define cudaError_t hipError_t
#define cudaErrorPeerAccessAlreadyEnabled hipErrorPeerAccessAlreadyEnabled
#define cudaEventCreate hipEventCreate
#define cudaEventDestroy hipEventDestroy
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaFreeHost hipHostFree
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaMalloc hipMalloc
#define cudaMallocHost(to, bytes) hipHostMalloc(to, bytes, 0)
#define cudaMemcpy hipMemcpy
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemcpyPeerAsync hipMemcpyPeerAsync
#define cudaMemset hipMemset
#define cudaRuntimeGetVersion hipRuntimeGetVersion
#define cudaSetDevice hipSetDevice
#define cudaStreamCreate hipStreamCreate
#define cudaStreamDestroy hipStreamDestroy
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStreamWaitEvent(stream, event) hipStreamWaitEvent(stream, event, 0)
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#else
#include <cuda_runtime.h>
#endif

// Where no such compiler reads this, the header above says how a function is carried out.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define PARIBUS_ON_GPU(function, blocks, threads, stream, ...) \
    function<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#endif

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "../common/kernel.hpp"

namespace paribus::gpu {

constexpr int threads = 256;  // of a block
constexpr int blocks = 4096;  // of which each thread takes every so many-th element

// Every element of an array, divided over all threads: `i` is the element.
#define PARIBUS_EACH(i, n)                                                                         \
    for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < (n); \
         i += static_cast<std::size_t>(gridDim.x) * blockDim.x)

inline void must(Session& session, cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::string why = std::string(what) + ": " + cudaGetErrorString(error);
    // cudaErrorUnsupportedPtxVersion
    if (static_cast<int>(error) == 222) why += " (nvcc is newer than the driver: use an older one)";
    session.give_up_if(why);
}

// A library that is loaded when it is needed, so that nothing is linked with it.
class Library {
public:
    Library(Session& session, std::initializer_list<const char*> names, const char* lacking) {
        for (const char* name : names)
            if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr)
            session.refuse(std::string(lacking) + "; name its directory in LD_LIBRARY_PATH");
    }
    template <class Function>
    void find(Session& session, const char* name, Function& into) const {
        into = reinterpret_cast<Function>(dlsym(library_, name));
        if (into == nullptr) session.refuse(std::string("the library found has no ") + name);
    }

private:
    void* library_ = nullptr;
};

// Memory of a GPU, or of the host that GPUs reach without a copy between.
class Memory {
public:
    Memory(Session& session, int gpu, std::size_t bytes, bool of_host = false)
        : of_host_(of_host), gpu_(gpu) {
        must(session, cudaSetDevice(gpu), "a GPU cannot be used");
        const std::string lack = "no memory left for " + std::to_string(bytes) +
                                 " bytes more (ask for less, in all arms)";
        must(session, of_host ? cudaMallocHost(&data_, bytes) : cudaMalloc(&data_, bytes),
             lack.c_str());
    }
    ~Memory() {
        (void)cudaSetDevice(gpu_);
        if (of_host_) (void)cudaFreeHost(data_);
        else (void)cudaFree(data_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    template <class T = unsigned char>
    T* as() const {
        return static_cast<T*>(data_);
    }

private:
    void* data_ = nullptr;
    bool of_host_;
    int gpu_;
};

// An ordered queue of work of one GPU, and the time that it takes there.
class Stream {
public:
    Stream(Session& session, int gpu) : gpu(gpu), session_(session) {
        must(session, cudaSetDevice(gpu), "a GPU cannot be used");
        must(session, cudaStreamCreate(&stream), "no stream");
        must(session, cudaEventCreate(&start_), "no event");
        must(session, cudaEventCreate(&end_), "no event");
    }
    ~Stream() {
        (void)cudaSetDevice(gpu);
        (void)cudaEventDestroy(start_);
        (void)cudaEventDestroy(end_);
        (void)cudaStreamDestroy(stream);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void wait() const { must(session_, cudaStreamSynchronize(stream), "the GPU failed"); }

    // Seconds on the GPU's clock for `times` calls of `work`, which puts work into the stream.
    template <class Work>
    double seconds(long times, Work work) const {
        must(session_, cudaSetDevice(gpu), "a GPU cannot be used");
        must(session_, cudaEventRecord(start_, stream), "no event");
        for (long i = 0; i < times; ++i) {
            work();
            session_.delay();
        }
        must(session_, cudaGetLastError(), "the GPU did not take its work");
        must(session_, cudaEventRecord(end_, stream), "no event");
        must(session_, cudaEventSynchronize(end_), "the GPU failed");
        float ms = 0;
        must(session_, cudaEventElapsedTime(&ms, start_, end_), "no time");
        return 1e-3 * static_cast<double>(ms);
    }

    const int gpu;
    cudaStream_t stream = nullptr;

private:
    Session& session_;
    cudaEvent_t start_ = nullptr, end_ = nullptr;
};

// Samples of seconds for one call, of as many together as last 2 ms: the step of the GPU's clock is
// half a microsecond. `seconds(times)` returns what so many calls take.
struct Sampled {
    long batch;
    std::vector<double> each_s;
};
template <class Seconds>
Sampled sample(Session& session, Seconds seconds) {
    const Arguments& asked = session.arguments;
    seconds(1);  // loads the code, wakes the GPU
    double one = std::max(1e-7, seconds(1));
    const long trial = std::clamp(static_cast<long>(2e-3 / one), 1L, 1000L);
    one = std::max(1e-7, seconds(trial) / static_cast<double>(trial));
    session.delay_loops = static_cast<std::uint64_t>(
        (1e3 * asked.delay_us + 1e9 * asked.delay_share * one) / session.clock.spin_ns);
    Sampled found{std::clamp(static_cast<long>(2e-3 / one), 1L, 10000L), {}};
    const double fit = asked.max_case_s / (one * static_cast<double>(found.batch));
    const long samples =
        std::clamp(static_cast<long>(fit), std::min(3L, asked.samples), asked.samples);
    for (long i = 0; i < samples; ++i) {
        const double s = seconds(found.batch) / static_cast<double>(found.batch);
        session.give_up_if(s > 0 ? "" : "the GPU's clock did not move during a sample");
        found.each_s.push_back(s);
    }
    session.delay_loops = 0;
    return found;
}

// `scale` / s for each sample, such as bytes for a bandwidth; with `inverse` scale * s.
inline void keep(Session& session, const std::string& where, const char* metric, const char* unit,
                 const Sampled& found, double scale, bool inverse = false,
                 const std::string& more = "") {
    Series series{where, metric, found.batch, {}, {}, unit, more};
    for (const double s : found.each_s) series.samples.push_back(inverse ? scale * s : scale / s);
    session.keep(std::move(series));
}

// The energy that a GPU has taken since its driver was loaded, by NVML where that is installed. The
// counter moves every 20 to 100 ms: what lies between two readings must last seconds.
class Energy {
public:
    explicit Energy(int gpu) {
        char bus[32] = "";
        void* const nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (nvml == nullptr || cudaDeviceGetPCIBusId(bus, sizeof bus, gpu) != cudaSuccess) return;
        const auto start = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
        const auto find = reinterpret_cast<int (*)(const char*, void**)>(
            dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2"));
        const auto read = reinterpret_cast<int (*)(void*, unsigned long long*)>(
            dlsym(nvml, "nvmlDeviceGetTotalEnergyConsumption"));
        if (start != nullptr && find != nullptr && start() == 0 && find(bus, &device_) == 0)
            read_ = read;
    }
    // Joules, below 0 where they are not known.
    double joules() const {
        unsigned long long mj = 0;
        return read_ != nullptr && read_(device_, &mj) == 0 ? 1e-3 * static_cast<double>(mj) : -1;
    }

private:
    int (*read_)(void*, unsigned long long*) = nullptr;
    void* device_ = nullptr;
};

// For the tests: damages a byte of a GPU's memory before it is checked.
inline void corrupt(Session& session, void* data, std::size_t bytes) {
    if (!session.arguments.corrupt) return;
    unsigned char byte = 0;
    unsigned char* const at = static_cast<unsigned char*>(data) + bytes / 2;
    must(session, cudaMemcpy(&byte, at, 1, cudaMemcpyDeviceToHost), "no copy");
    byte ^= 0x10;
    must(session, cudaMemcpy(at, &byte, 1, cudaMemcpyHostToDevice), "no copy");
}

// Counts, on the GPU, what a check finds wrong; `function` takes `arguments` and the counter.
#define PARIBUS_CHECK(session, on, where, n, function, ...)                                    \
    do {                                                                                       \
        ::paribus::gpu::Memory counter(session, (on).gpu, sizeof(unsigned));                   \
        unsigned wrong = 0;                                                                    \
        ::paribus::gpu::must(session, cudaMemset(counter.as(), 0, sizeof wrong), "no memory"); \
        PARIBUS_ON_GPU(function, ::paribus::gpu::blocks, ::paribus::gpu::threads, (on).stream, \
                       __VA_ARGS__, counter.as<unsigned>());                                   \
        (on).wait();                                                                           \
        ::paribus::gpu::must(                                                                  \
            session, cudaMemcpy(&wrong, counter.as(), sizeof wrong, cudaMemcpyDeviceToHost),   \
            "no copy");                                                                        \
        if (wrong > 0)                                                                         \
            (session).give_up_if("wrong data at " + (where) + ": " + std::to_string(wrong) +   \
                                 " of " + std::to_string(n));                                  \
        (session).verify(where, -1, n);                                                        \
    } while (false)

// How many GPUs are used; refuses more than there are.
inline int gpus(Session& session) {
    int there = 0;
    const cudaError_t error = cudaGetDeviceCount(&there);
    if (error != cudaSuccess) session.refuse(std::string("no GPU: ") + cudaGetErrorString(error));
    const long asked = session.arguments.numbers.at("gpus")[0];
    if (asked > there)
        session.refuse(std::to_string(asked) + " GPUs were asked for, this node shows " +
                       std::to_string(there));
    if (session.ranks != 1)
        session.refuse("one rank uses all GPUs, not " + std::to_string(session.ranks));
    return static_cast<int>(asked);
}

// What a case says beside its samples: the GPU, its address, the versions of driver and runtime.
inline Object about(int gpu) {
    cudaDeviceProp of{};
    int driver = 0, runtime = 0;
    char bus[32] = "";
    if (cudaGetDeviceProperties(&of, gpu) != cudaSuccess ||
        cudaDeviceGetPCIBusId(bus, sizeof bus, gpu) != cudaSuccess ||
        cudaDriverGetVersion(&driver) != cudaSuccess ||
        cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        return {};
    Object said;
    said.add("name", std::string(of.name)).add("bus", std::string(bus));
    return said.add("driver", driver).add("runtime", runtime);
}

// The same of the first `count` GPUs, which take part together.
inline Object about_all(int count) {
    std::vector<std::string> names, buses;
    for (int gpu = 0; gpu < count; ++gpu) {
        cudaDeviceProp of{};
        char bus[32] = "";
        if (cudaGetDeviceProperties(&of, gpu) != cudaSuccess ||
            cudaDeviceGetPCIBusId(bus, sizeof bus, gpu) != cudaSuccess)
            return {};
        names.push_back(of.name);
        buses.push_back(bus);
    }
    int driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess ||
        cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        return {};
    Object said;
    said.add("names", names).add("buses", buses);
    return said.add("driver", driver).add("runtime", runtime);
}

constexpr Option one_gpu[] = {{"gpus", "1", "how many, each alone", 1, 64}, {}};
constexpr Option several_gpus[] = {{"gpus", "2", "how many take part", 2, 64}, {}};

// The description of a GPU's kernel, but for its metric and sizes.
constexpr Spec spec_of(const char* name, const char* summary, const Option* options) {
    Spec spec;
    spec.name = name;
    spec.summary = summary;
    spec.unit = "GB/s";
    spec.buffers = 0;
    spec.carried = false;
    spec.likes = false;
    spec.intervals = true;
    spec.options = options;
    spec.samples = 20;
    spec.max_case_s = 1;
    return spec;
}

}  // namespace paribus::gpu
