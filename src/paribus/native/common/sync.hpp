// Starting together, waiting quietly, and reading the other ranks' clocks.
#pragma once

#include <mpi.h>
#include <time.h>

#include <cstdint>

#include "clock.hpp"

namespace paribus {

constexpr int sync_tag = 7001;
constexpr int offset_tag = 7002;

// A dissemination barrier of our own: the same steps whatever the MPI library's barrier does, so
// that two libraries are compared from the same start. After log2(ranks) rounds every rank has
// heard, directly or not, from every other.
inline void start_together(int rank, int ranks) {
    for (int apart = 1; apart < ranks; apart *= 2) {
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, (rank + apart) % ranks, sync_tag, nullptr, 0, MPI_BYTE,
                     (rank - apart + ranks) % ranks, sync_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

// Returns on all ranks once rank 0 has come here; meanwhile the others sleep instead of polling,
// so that they disturb nothing that rank 0 measures.
inline void wait_quietly_for_rank_0(int rank) {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (rank == 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    int done = 0;
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
        const timespec pause{0, 200000};
        nanosleep(&pause, nullptr);
    }
}

// Returns once all ranks have come; who waits sleeps, and so takes nothing from the pairs that are
// still measured. Collective.
inline void meet_quietly() {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    while (!done) {
        const timespec pause{0, 100000};
        nanosleep(&pause, nullptr);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

// How far this rank's clock was ahead of rank 0's, and when (by this rank's clock).
struct Offset {
    std::int64_t ahead_ns = 0;
    std::int64_t at = 0;
};

// From the fastest of 20 round trips with rank 0: the reply's stamp then lies half-way between the
// question's and the answer's, give or take half that round trip (Cristian 1989). Collective.
inline Offset measure_offset(int rank, int ranks) {
    constexpr int trips = 20;
    Offset best{0, now_ns()};
    for (int other = 1; other < ranks; ++other) {
        std::int64_t shortest = INT64_MAX, remote = 0;
        for (int i = 0; i < trips; ++i) {
            if (rank == other) {
                const std::int64_t asked = now_ns();
                MPI_Send(&asked, 1, MPI_INT64_T, 0, offset_tag, MPI_COMM_WORLD);
                MPI_Recv(&remote, 1, MPI_INT64_T, 0, offset_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                const std::int64_t heard = now_ns();
                if (heard - asked < shortest) {
                    shortest = heard - asked;
                    best.at = asked + (heard - asked) / 2;
                    best.ahead_ns = best.at - remote;
                }
            } else if (rank == 0) {
                MPI_Recv(&remote, 1, MPI_INT64_T, other, offset_tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
                remote = now_ns();
                MPI_Send(&remote, 1, MPI_INT64_T, other, offset_tag, MPI_COMM_WORLD);
            }
        }
    }
    return best;
}

// Nanoseconds since `origin`, a reading of rank 0's clock, at which this rank's clock showed
// `reading`; the drift between the two measurements of the offset is taken as even.
inline double since(std::int64_t origin, std::int64_t reading, const Offset& start,
                    const Offset& end) {
    const double span = static_cast<double>(end.at - start.at);
    const double share = span > 0 ? static_cast<double>(reading - start.at) / span : 0;
    return static_cast<double>(reading - start.ahead_ns - origin) -
           share * static_cast<double>(end.ahead_ns - start.ahead_ns);
}

}  // namespace paribus
