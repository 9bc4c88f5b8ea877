// Ring: bytes per second that each rank sends to the next one, all at the same time.
#include "common/pairs.hpp"

using namespace paribus;

struct Ring : Case {
    using Case::Case;
    static constexpr Spec spec() {
        Spec spec;
        spec.name = "ring";
        spec.summary = "Each rank to the next, all at once, in windows of 64 messages.";
        spec.ranks = Ranks::several;
        spec.metric = "bandwidth";
        spec.unit = "MB/s";
        spec.likes = false;
        return spec;
    }
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;

    void call(long) {
        for (int i = 0; i < window; ++i)
            MPI_Irecv(in.data, count, MPI_BYTE, previous, 1, comm, requests + i);
        for (int i = 0; i < window; ++i)
            MPI_Isend(out.data, count, MPI_BYTE, next, 1, comm, requests + window + i);
        MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
    }
    void prepare() const {
        fill(out.data, size, rank, next, salt);
        poison(in.data, size, previous, rank, salt);
    }
    std::size_t expected() const { return size; }
    long wrong() const { return first_wrong(in.data, size, previous, rank, salt); }
    double figure(double ns) const { return 1e3 * window * count / ns; }

    MPI_Request requests[2 * window];
};

int main(int argc, char** argv) { return run<Ring>(argc, argv); }
