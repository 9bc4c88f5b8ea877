/* Four small programs, as users write them: `mini jacobi|train|nbody|sort STEPS`.
 * Each prints the seconds between its two barriers: `loop 0.412 s`. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* Rows of a plate, their edges exchanged without blocking while the inner rows are computed. */
static void jacobi(int steps) {
    const int n = 512, rows = n / ranks;
    double* now = calloc((size_t)(rows + 2) * n, sizeof *now);
    double* next = calloc((size_t)(rows + 2) * n, sizeof *next);
    const int up = rank ? rank - 1 : MPI_PROC_NULL,
              down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    for (int j = 0; j < n; ++j) now[n + j] = j;
    for (int step = 0; step < steps; ++step) {
        MPI_Request four[4];
        MPI_Irecv(now, n, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, four);
        MPI_Irecv(now + (rows + 1) * n, n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, four + 1);
        MPI_Isend(now + n, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, four + 2);
        MPI_Isend(now + rows * n, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, four + 3);
        double change = 0;
        for (int pass = 0; pass < 2; ++pass) {
            for (int i = pass ? 1 : 2; i <= rows - !pass; i += pass ? rows - 1 : 1)
                for (int j = 1; j < n - 1; ++j) {
                    const double* at = now + i * n + j;
                    next[i * n + j] = 0.25 * (at[-n] + at[n] + at[-1] + at[1]);
                    change += fabs(next[i * n + j] - *at);
                }
            if (!pass) MPI_Waitall(4, four, MPI_STATUSES_IGNORE);
        }
        if (step % 10 == 0)
            MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double* was = now;
        now = next;
        next = was;
    }
    free(now);
    free(next);
}

/* Gradients of six layers, each summed over all ranks while the next one is computed. */
static void train(int steps) {
    enum { layers = 6, n = 1 << 17 };
    static float weights[layers][n], gradients[layers][n];
    for (int step = 0; step < steps; ++step) {
        MPI_Request sums[layers];
        for (int l = 0; l < layers; ++l) {
            for (int pass = 0; pass < 4; ++pass)
                for (int i = 0; i < n; ++i)
                    gradients[l][i] =
                        0.5f * weights[l][i] + 0.1f * (float)(i % 7) + gradients[l][i] * 1e-3f;
            MPI_Iallreduce(MPI_IN_PLACE, gradients[l], n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                           sums + l);
        }
        MPI_Waitall(layers, sums, MPI_STATUSES_IGNORE);
        for (int l = 0; l < layers; ++l)
            for (int i = 0; i < n; ++i) weights[l][i] -= 1e-3f * gradients[l][i];
    }
}

/* Bodies that go round a ring of ranks. */
static void nbody(int steps) {
    enum { n = 300 };
    static double mine[n][3], visiting[n][3], force[n][3];
    for (int i = 0; i < n; ++i) mine[i][0] = i + rank, mine[i][1] = i * 0.7, mine[i][2] = i % 11;
    for (int step = 0; step < steps; ++step) {
        memcpy(visiting, mine, sizeof mine);
        for (int hop = 0; hop < ranks; ++hop) {
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) {
                    double d[3], square = 0.01;
                    for (int k = 0; k < 3; ++k)
                        d[k] = visiting[j][k] - mine[i][k], square += d[k] * d[k];
                    const double pull = 1 / (square * sqrt(square));
                    for (int k = 0; k < 3; ++k) force[i][k] += pull * d[k];
                }
            MPI_Sendrecv_replace(visiting, 3 * n, MPI_DOUBLE, (rank + 1) % ranks, 0,
                                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < n; ++i)
            for (int k = 0; k < 3; ++k) mine[i][k] += 1e-6 * force[i][k];
        double most = force[0][0];
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
}

static int by_value(const void* a, const void* b) {
    const int x = *(const int*)a, y = *(const int*)b;
    return (x > y) - (x < y);
}

/* Keys are sorted, each to the rank that its range belongs to. */
static void sort(int steps) {
    enum { n = 30000 };
    int *keys = malloc(n * sizeof *keys), *mine = malloc((size_t)n * ranks * sizeof *mine);
    int *counts = malloc(4 * ranks * sizeof *counts), *from = counts + ranks, *at = from + ranks,
        *to = at + ranks;
    unsigned state = 12345u + (unsigned)rank;
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < n; ++i) keys[i] = (int)((state = state * 1664525u + 1013904223u) >> 8);
        qsort(keys, n, sizeof *keys, by_value);
        memset(counts, 0, ranks * sizeof *counts);
        for (int i = 0; i < n; ++i) ++counts[(long)keys[i] * ranks >> 24];
        MPI_Alltoall(counts, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
        at[0] = to[0] = 0;
        for (int r = 1; r < ranks; ++r)
            at[r] = at[r - 1] + counts[r - 1], to[r] = to[r - 1] + from[r - 1];
        MPI_Alltoallv(keys, counts, at, MPI_INT, mine, from, to, MPI_INT, MPI_COMM_WORLD);
        qsort(mine, (size_t)(to[ranks - 1] + from[ranks - 1]), sizeof *mine, by_value);
    }
    free(keys);
    free(mine);
    free(counts);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char* names[] = {"jacobi", "train", "nbody", "sort"};
    void (*programs[])(int) = {jacobi, train, nbody, sort};
    const int steps = argc == 3 ? atoi(argv[2]) : 0;
    for (int p = 0; p < 4 && steps; ++p) {
        if (strcmp(argv[1], names[p])) continue;
        programs[p](steps / 10 + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = MPI_Wtime();
        programs[p](steps);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) printf("loop %.4f s\n", MPI_Wtime() - begun);
    }
    MPI_Finalize();
}
