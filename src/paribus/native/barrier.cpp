// Barrier: the time from entering it until the last rank may leave.
#include "common/collective.hpp"

using namespace paribus;

struct Barrier : Collective {
    using Collective::Collective;
    static constexpr Spec spec() {
        Spec spec = collective("barrier", "Time of MPI_Barrier, slowest rank.");
        spec.sizes = nullptr;
        spec.data = false;
        return spec;
    }
    void call(long) const { MPI_Barrier(MPI_COMM_WORLD); }
    void prepare() const {}
    long wrong() const { return -1; }
};

int main(int argc, char** argv) { return run<Barrier>(argc, argv); }
