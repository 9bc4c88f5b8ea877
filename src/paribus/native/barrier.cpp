// Barrier: the time from entering it until the last rank may leave.
#include "common/collective.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Session session({"barrier", "Time of MPI_Barrier, slowest rank.", Ranks::several, nullptr},
                    argc, argv);
    const auto nothing = [] {};
    const auto call = [](long) { MPI_Barrier(MPI_COMM_WORLD); };
    measure_collective(session, "{}", 0, call, nothing, nothing);
    return session.finish();
}
