// How work that lasts long is measured: some repetitions, each of which all ranks start together.
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

// The longest of all ranks' seconds for their part of some work, once. Collective.
template <class Work>
double slowest_s(const Session& session, Work work) {
    start_together(session.rank, session.ranks);
    const std::int64_t start = now_ns();
    work();
    double seconds = 1e-9 * static_cast<double>(now_ns() - start), longest = 0;
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

// Sets a delay of --delay-us or --delay-share in each repetition, of which one takes `seconds`.
inline void set_delay(Session& session, double seconds) {
    const Arguments& asked = session.arguments;
    const double ns = 1e3 * asked.delay_us + 1e9 * asked.delay_share * seconds;
    session.delay_loops = static_cast<std::uint64_t>(ns / session.clock.spin_ns);
}

// At least 3 repetitions, and as many as --max-case-s allows; never more than --samples.
inline long repetitions(const Arguments& asked, double seconds) {
    const long fit = static_cast<long>(asked.max_case_s / seconds);
    return std::clamp(fit, std::min(3L, asked.samples), asked.samples);
}

}  // namespace paribus
