// Stands for libnccl.so.2 beside the header of this folder: a group of calls is summed when it
// ends.
#include <cstddef>
#include <vector>

namespace {
struct Call {
    const float* from;
    float* to;
    std::size_t n;
};
std::vector<Call> calls;
}  // namespace

extern "C" {
int ncclCommInitAll(void** comms, int, const int*) { return comms[0] = nullptr, 0; }
int ncclCommDestroy(void*) { return 0; }
int ncclGroupStart() { return calls.clear(), 0; }
int ncclAllReduce(const void* from, void* to, std::size_t n, int type, int op, void*, void*) {
    calls.push_back({static_cast<const float*>(from), static_cast<float*>(to), n});
    return type == 7 && op == 0 ? 0 : 4;
}
int ncclGroupEnd() {
    for (const Call& call : calls)
        for (std::size_t i = 0; i < call.n; ++i) {
            float sum = 0;
            for (const Call& one : calls) sum += one.from[i];
            call.to[i] = sum;
        }
    return 0;
}
const char* ncclGetErrorString(int) { return "invalid argument"; }
int ncclGetVersion(int* to) { return *to = 0, 0; }
}
