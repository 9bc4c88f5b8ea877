// 30 steps of 10 ms, in which each rank computes ("busy") or sleeps ("asleep"), and a barrier behind
// each: `steps busy`.
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

static double own_s() {
    timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return double(at.tv_sec) + 1e-9 * double(at.tv_nsec);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < 30; ++step) {
        const double begun = own_s();
        if (argc > 1 && std::strcmp(argv[1], "asleep") == 0) usleep(10000);
        else
            while (own_s() < begun + 0.01) {
            }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
