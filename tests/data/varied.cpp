// A program with every kind of call that a skeleton has: for replays.
#include <mpi.h>

#include <vector>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, value = 1, sum = 0, index;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int other = 1 - rank;
    std::vector<char> out(1 << 18), in(1 << 18);
    std::vector<int> sizes{3000, 70000}, places{0, 3000}, mine(2, sizes[rank]);
    std::vector<int> apart{0, sizes[rank]};
    MPI_Comm one, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &one);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &both);
    for (int i = 0; i < 3; i++) {
        MPI_Bcast(out.data(), 100, MPI_CHAR, 1, both);
        MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, one);
        MPI_Gatherv(out.data(), sizes[rank], MPI_CHAR, in.data(), sizes.data(), places.data(),
                    MPI_CHAR, 0, MPI_COMM_WORLD);
        MPI_Scatterv(out.data(), sizes.data(), places.data(), MPI_CHAR, in.data(), sizes[rank],
                     MPI_CHAR, 1, MPI_COMM_WORLD);
        MPI_Allgatherv(out.data(), sizes[rank], MPI_CHAR, in.data(), sizes.data(), places.data(),
                       MPI_CHAR, MPI_COMM_WORLD);
        MPI_Alltoallv(out.data(), sizes.data(), places.data(), MPI_CHAR, in.data(), mine.data(),
                      apart.data(), MPI_CHAR, MPI_COMM_WORLD);
        MPI_Scan(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allgather(&value, 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Alltoall(out.data(), 500, MPI_CHAR, in.data(), 500, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Sendrecv(out.data(), 10, MPI_CHAR, other, 7, in.data(), 10, MPI_CHAR, other, 7, both,
                     MPI_STATUS_IGNORE);
        MPI_Request two[2], barrier;
        MPI_Irecv(in.data(), 1 << 17, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, two);
        MPI_Isend(out.data(), 2000 + rank, MPI_CHAR, other, 9, MPI_COMM_WORLD, two + 1);
        MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE);
        MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
        for (int done = 0; !done;) MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&one);
    MPI_Comm_free(&both);
    MPI_Finalize();
}
