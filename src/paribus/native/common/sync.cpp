#include "sync.hpp"

#include <mpi.h>
#include <time.h>

#include "clock.hpp"

namespace paribus {

namespace {

constexpr int sync_tag = 7001;

constexpr int offset_tag = 7002;

}  // namespace

void start_together(int rank, int ranks) {
    for (int apart = 1; apart < ranks; apart *= 2) {
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, (rank + apart) % ranks, sync_tag, nullptr, 0, MPI_BYTE,
                     (rank - apart + ranks) % ranks, sync_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

void wait_quietly_for_rank_0(int rank) {
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

double of_rank_0(double value, int rank) {
    double mine = rank == 0 ? value : 0, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

void settle() {
    const std::int64_t start = now_ns();
    while (now_ns() - start < 5'000'000) {
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void meet_quietly() {
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

Offset measure_offset(int rank, int ranks) {
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

double since(std::int64_t origin, std::int64_t reading, const Offset& start, const Offset& end) {
    const double span = static_cast<double>(end.at - start.at);
    const double share = span > 0 ? static_cast<double>(reading - start.at) / span : 0;
    return static_cast<double>(reading - start.ahead_ns - origin) -
           share * static_cast<double>(end.ahead_ns - start.ahead_ns);
}

}  // namespace paribus
