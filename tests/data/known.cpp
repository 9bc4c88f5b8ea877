// A program whose MPI calls are known by number, kind and size: for the profiler.
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static std::vector<char> out(1 << 20), in(1 << 20);

static void small(int rank, int tag, int times) {
    char one[8] = {};
    for (int i = 0; i < times; i++)
        if (rank == 0) MPI_Send(one, 8, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
        else MPI_Recv(one, 8, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int rank, int first, int second) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Irecv(in.data(), first, MPI_CHAR, 1 - rank, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), second, MPI_CHAR, 1 - rank, 8, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
    int rank, given, sum = 0, one = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    small(rank, 0, 1000);
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        std::thread other(small, rank, 1, 500);
        small(rank, 2, 500);
        other.join();
    }
    for (int i = 0; i < 10; i++) exchange(rank, 1 << 19, 1 << 19);
    exchange(rank, 1 << 19, 8);  // of two classes at once; the message is shorter than its buffer
    for (int i = 0; i < 5; i++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_CHAR, in.data(), 4096, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Request again;
    if (rank == 0) MPI_Send_init(out.data(), 64, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &again);
    else MPI_Recv_init(in.data(), 64, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &again);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&again);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&again);
    MPI_Win window;
    MPI_Win_create(in.data(), 1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out.data(), 32, MPI_CHAR, 1 - rank, 0, 32, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    if (argc > 1 && !strcmp(argv[1], "exit")) std::_Exit(0);
    MPI_Finalize();
    return argc > 1 && !strcmp(argv[1], "fail") ? 3 : 0;
}
