// Alltoall: the time until every rank has what every rank had for it.
#include "common/collective.hpp"

using namespace paribus;

struct Alltoall : Collective {
    using Collective::Collective;
    static constexpr Spec spec() {
        Spec spec = collective("alltoall", "Time of MPI_Alltoall, slowest rank.");
        spec.out_for_each_rank = true;
        spec.in_for_each_rank = true;
        return spec;
    }
    void call(long) const {
        MPI_Alltoall(out.data, count, MPI_BYTE, in.data, count, MPI_BYTE, comm);
    }
    void prepare() const {
        for (int r = 0; r < ranks; ++r) fill(block(out, r), size, rank, r, salt);
        poison_blocks(rank);
    }
    long wrong() const { return wrong_block(rank); }
};

int main(int argc, char** argv) { return run<Alltoall>(argc, argv); }
