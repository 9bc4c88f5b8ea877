// Stands for CUDA's header where there is no GPU: a "GPU" is memory of the host, a function on it
// is a loop over its threads, one after the other. The tests compile native/gpu.cu with it to see
// that arguments, data, checks and output are right. Its times mean nothing.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __global__
#define __device__

struct Three {
    unsigned x, y, z;
};
inline Three blockIdx, threadIdx, blockDim, gridDim;

#define PARIBUS_ON_GPU(function, blocks, threads, stream, ...)                                    \
    do {                                                                                          \
        (void)(stream);                                                                           \
        gridDim.x = blocks, blockDim.x = threads;                                                 \
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)                                \
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) function(__VA_ARGS__); \
    } while (false)

inline void atomicAdd(unsigned* to, unsigned more) { *to += more; }

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation,
    cudaErrorNoDevice,
    cudaErrorPeerAccessAlreadyEnabled,
    cudaErrorUnsupportedPtxVersion = 222
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
using cudaStream_t = void*;
using cudaEvent_t = std::chrono::steady_clock::time_point*;
struct cudaDeviceProp {
    char name[256];
    std::size_t totalGlobalMem;
};
struct cudaFuncAttributes {
    int ptxVersion;
};

inline int gpus_there() {
    const char* const said = std::getenv("PARIBUS_SHIM_GPUS");
    return said == nullptr ? 0 : std::atoi(said);
}
// The bytes of each GPU: PARIBUS_SHIM_MEMORY, 80 GiB without it.
inline std::size_t memory_of_each() {
    const char* const said = std::getenv("PARIBUS_SHIM_MEMORY");
    return said == nullptr ? std::size_t{80} << 30 : std::strtoull(said, nullptr, 10);
}
inline const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "an error";
}
inline cudaError_t cudaGetDeviceCount(int* to) {
    *to = gpus_there();
    return *to > 0 ? cudaSuccess : cudaErrorNoDevice;
}
inline cudaError_t cudaSetDevice(int gpu) {
    return gpu < gpus_there() ? cudaSuccess : cudaErrorNoDevice;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
    std::snprintf(to->name, sizeof to->name, "stand-in without a GPU");
    to->totalGlobalMem = memory_of_each();
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* to, int size, int gpu) {
    std::snprintf(to, static_cast<std::size_t>(size), "0000:%02x:00.0", gpu);
    return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* to) { return *to = 0, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* to) { return *to = 0, cudaSuccess; }
// For which architecture the code was compiled: PARIBUS_SHIM_PTX, 80 without it.
template <class Function>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, Function) {
    const char* const said = std::getenv("PARIBUS_SHIM_PTX");
    to->ptxVersion = said == nullptr ? 80 : std::atoi(said);
    return cudaSuccess;
}
// What a driver says that is older than nvcc, with PARIBUS_SHIM_OLD_DRIVER.
inline cudaError_t cudaGetLastError() {
    const bool old = std::getenv("PARIBUS_SHIM_OLD_DRIVER") != nullptr;
    return old ? cudaErrorUnsupportedPtxVersion : cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaMalloc(void** to, std::size_t bytes) {
    *to = bytes > memory_of_each() ? nullptr : std::malloc(bytes);
    return *to != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return cudaMalloc(to, bytes); }
inline cudaError_t cudaFree(void* data) { return std::free(data), cudaSuccess; }
inline cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
inline cudaError_t cudaMemset(void* to, int value, std::size_t n) {
    return std::memset(to, value, n), cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t n, cudaMemcpyKind) {
    return std::memcpy(to, from, n), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t n, cudaMemcpyKind kind,
                                   cudaStream_t) {
    return cudaMemcpy(to, from, n, kind);
}
inline cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t n,
                                       cudaStream_t) {
    return cudaMemcpy(to, from, n, cudaMemcpyHostToDevice);
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
    return cudaErrorPeerAccessAlreadyEnabled;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* to) { return *to = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* to) {
    *to = new std::chrono::steady_clock::time_point;
    return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    *event = std::chrono::steady_clock::now();
    return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
    *ms = std::chrono::duration<float, std::milli>(*to - *from).count();
    return cudaSuccess;
}
