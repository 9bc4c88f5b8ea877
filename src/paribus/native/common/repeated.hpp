// How work that lasts long is measured: some repetitions, each of which all ranks start together.
#pragma once

#include <mpi.h>

#include <algorithm>

#include "kernel.hpp"

namespace paribus {

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
