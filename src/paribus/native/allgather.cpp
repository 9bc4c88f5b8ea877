// Allgather: the time until every rank has every rank's data.
#include "common/collective.hpp"

using namespace paribus;

struct Allgather : Collective {
    using Collective::Collective;
    static constexpr Spec spec() {
        Spec spec = collective("allgather", "Time of MPI_Allgather, slowest rank.");
        spec.in_for_each_rank = true;
        return spec;
    }
    void call(long) const {
        MPI_Allgather(out.data, count, MPI_BYTE, in.data, count, MPI_BYTE, comm);
    }
    void prepare() const {
        fill(out.data, size, rank, 0, salt);
        poison_blocks(0);
    }
    long wrong() const { return wrong_block(0); }
};

int main(int argc, char** argv) { return run<Allgather>(argc, argv); }
