// Rank 1 receives short messages, of which every 32nd comes late, and times each one itself.
#include <mpi.h>

#include <chrono>
#include <cstdio>

static double now() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) {
    constexpr int many = 1000000;
    int rank;
    double message = 0, inside = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < many; i++) {
        double start = now();
        if (rank) {
            MPI_Recv(&message, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            inside += now() - start;
        } else {
            while (i % 32 == 0 && now() < start + 4e-5) {
            }
            MPI_Send(&message, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        }
    }
    if (rank) std::printf("%.9f\n", inside);
    MPI_Finalize();
}
