// Latency: half of a round trip of one message between two ranks.
#include "common/pairs.hpp"

using namespace paribus;

struct Latency : Pair {
    using Pair::Pair;
    static constexpr Spec spec() {
        Spec spec;
        spec.name = "latency";
        spec.summary = "Half of a round trip of one message between two ranks.";
        spec.ranks = Ranks::two;
        spec.metric = "latency";
        spec.unit = "us";
        spec.least_size = 0;
        spec.pairs = true;
        spec.start = Start::flow;
        spec.osu_iterations = 10000;
        spec.osu_warmup = 100;
        spec.osu_large_iterations = 1000;
        spec.osu_large_warmup = 10;
        // Where MPI_Alloc_mem puts the two buffers side by side, a message of 4 KiB takes 3 %
        // longer than in Intel's program (docs/fidelity.md).
        spec.imb_room = 4096;
        return spec;
    }
    void call(long) const {
        if (low) {
            send();
            receive();
        } else {
            receive();
            send();
        }
    }
    void send() const { MPI_Send(out.data, count, MPI_BYTE, other, 1, comm); }
    void receive() const { MPI_Recv(in.data, count, MPI_BYTE, other, 1, comm, MPI_STATUS_IGNORE); }
    double figure(double ns) const { return 1e-3 / 2 * ns; }
};

int main(int argc, char** argv) { return run<Latency>(argc, argv); }
