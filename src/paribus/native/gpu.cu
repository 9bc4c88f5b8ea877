// The kernels of GPUs, one program: the first argument names the benchmark. nvcc or hipcc reads it.
#include <cstdio>
#include <cstring>

#include "gpu/allreduce.hpp"
#include "gpu/copy.hpp"
#include "gpu/gemm.hpp"
#include "gpu/latency.hpp"
#include "gpu/peer.hpp"
#include "gpu/roofline.hpp"
#include "gpu/stream.hpp"

using namespace paribus;

namespace {

template <class Kernel>
int launch(int argc, char** argv) {
    Session session(Kernel::spec());
    session.start(argc, argv);
    Kernel::measure(session);
    return session.finish();
}

// The bytes of memory of each GPU, as a list. It needs no launcher.
int cards() {
    int there = 0;
    cudaError_t error = cudaGetDeviceCount(&there);
    std::string said;
    for (int gpu = 0; error == cudaSuccess && gpu < there; ++gpu) {
        cudaDeviceProp of{};
        error = cudaGetDeviceProperties(&of, gpu);
        said += (gpu == 0 ? "" : ", ") + std::to_string(of.totalGlobalMem);
    }
    if (error != cudaSuccess) {
        std::fprintf(stderr, "gpu: no GPU: %s\n", cudaGetErrorString(error));
        return 2;
    }
    std::printf("[%s]\n", said.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const struct {
        const char* name;
        int (*launch)(int, char**);
    } known[] = {{"gpu_stream", launch<gpu::StreamKernel>},
                 {"gpu_roofline", launch<gpu::RooflineKernel>},
                 {"gpu_gemm", launch<gpu::GemmKernel>},
                 {"gpu_latency", launch<gpu::LatencyKernel>},
                 {"gpu_copy", launch<gpu::CopyKernel>},
                 {"gpu_peer", launch<gpu::PeerKernel>},
                 {"gpu_allreduce", launch<gpu::AllreduceKernel>}};
    if (argc == 2 && std::strcmp(argv[1], "cards") == 0) return cards();
    for (const auto& one : known)
        if (argc > 1 && std::strcmp(argv[1], one.name) == 0) return one.launch(argc - 1, argv + 1);
    std::fputs(
        "gpu: the first argument must be one of gpu_stream, gpu_roofline, gpu_gemm, gpu_latency, "
        "gpu_copy, gpu_peer, gpu_allreduce, cards\n",
        stderr);
    return 2;
}
