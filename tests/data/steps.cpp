// 30 steps of 10 ms, in which each rank computes ("busy") or sleeps ("asleep"), and a barrier behind
// each: `steps busy`. Or the same sums twice, at once and then in 300 steps of 0.5 ms or so: `steps
// short`. Rank 0 prints the seconds between the first and the last barrier.
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

static double own_s() {
    timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return double(at.tv_sec) + 1e-9 * double(at.tv_nsec);
}

// Sums that take 0.5 ms or so; nothing but computing, without a look at any clock.
static double sums(double start) {
    for (long i = 0; i < 400000; ++i) start = 0.5 * start + 1;
    return start;
}

static void in_short_steps() {
    volatile double sum = 0;
    for (int i = 0; i < 300; ++i) sum = sums(sum);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 300; ++i) {
        sum = sums(sum);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    const double first_s = MPI_Wtime();
    const char* how = argc > 1 ? argv[1] : "";
    const bool brief = std::strcmp(how, "short") == 0;
    if (brief) in_short_steps();
    for (int step = 0; step < 30 && !brief; ++step) {
        const double begun = own_s();
        if (std::strcmp(how, "asleep") == 0) usleep(10000);
        else
            while (own_s() < begun + 0.01) {
            }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const double seconds = MPI_Wtime() - first_s;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::printf("seconds: %.6f\n", seconds);
    MPI_Finalize();
    return 0;
}
