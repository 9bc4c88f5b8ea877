// Broadcast: the time until every rank has the root's data.
#include "common/collective.hpp"

using namespace paribus;

struct Bcast : Collective {
    using Collective::Collective;
    static constexpr Spec spec() { return collective("bcast", "Time of MPI_Bcast, slowest rank."); }
    // Within a batch the next rank is root each time: it cannot send before it has received, so
    // that operations do not overlap. OSU's and Intel's programs keep rank 0.
    const bool rotate = session.like(Like::paribus);
    int root = 0;

    void call(long i) {
        root = rotate ? static_cast<int>(i % ranks) : 0;
        MPI_Bcast(rank == root ? out.data : in.data, count, MPI_BYTE, root, comm);
    }
    void prepare() const {
        fill(out.data, size, rank, 0, salt);
        poison(in.data, size, 0, 0, salt);
    }
    std::size_t expected() const { return rank == root ? 0 : size; }
    long wrong() const { return first_wrong(in.data, size, root, 0, salt); }
};

int main(int argc, char** argv) { return run<Bcast>(argc, argv); }
