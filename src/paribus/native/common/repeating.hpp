// What kernels share that time a whole computation, several times in one launch.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel.hpp"

namespace paribus {

// The time that this rank spends in MPI calls.
class InMpi {
public:
    template <class Call>
    void operator()(Call call) {
        const std::int64_t start = now_ns();
        call();
        ns_ += now_ns() - start;
    }
    double ns() const { return static_cast<double>(ns_); }
    void clear() { ns_ = 0; }

private:
    std::int64_t ns_ = 0;
};

// Each rank's share of the time in MPI, from this rank's seconds in it and of all. Collective.
inline std::vector<double> shares(const Session& session, double in_mpi, double all) {
    double share = std::min(1.0, in_mpi / all);
    std::vector<double> of_all(static_cast<std::size_t>(session.ranks));
    MPI_Allgather(&share, 1, MPI_DOUBLE, of_all.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
    return of_all;
}

// The seconds of `work`, the longest of all ranks, which start it together. Collective.
template <class Work>
double longest_s(Session& session, Work work) {
    start_together(session.rank, session.ranks);
    const std::int64_t start = now_ns();
    work();
    double seconds = 1e-9 * static_cast<double>(now_ns() - start), longest = 0;
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

// A delay of --delay-us or --delay-share in each repetition, of which one takes `seconds`.
inline void set_delay(Session& session, double seconds) {
    const Arguments& asked = session.arguments;
    const double ns = 1e3 * asked.delay_us + 1e9 * asked.delay_share * seconds;
    session.delay_loops = static_cast<std::uint64_t>(ns / session.clock.spin_ns);
}

}  // namespace paribus
