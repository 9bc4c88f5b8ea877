// A three-dimensional stencil of seven points, 128^3 doubles, twice 20 sweeps: prints their time,
// and checks that the mean stays as it is within rounding.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 128, SWEEPS = 20 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t at(int i, int j, int k) {
    const int mask = N - 1;
    return ((size_t)(i & mask) * N + (size_t)(j & mask)) * N + (size_t)(k & mask);
}

static void sweep(double *to, const double *from) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const double *const up = from + at(i - 1, j, 0), *const down = from + at(i + 1, j, 0);
            const double *const left = from + at(i, j - 1, 0), *const right = from + at(i, j + 1, 0);
            const double *const here = from + at(i, j, 0);
            double *const out = to + at(i, j, 0);
            for (int k = 1; k < N - 1; k++)
                out[k] = 0.4 * here[k] + 0.1 * (up[k] + down[k] + left[k] + right[k] + here[k - 1] + here[k + 1]);
            out[0] = 0.4 * here[0] + 0.1 * (up[0] + down[0] + left[0] + right[0] + here[N - 1] + here[1]);
            out[N - 1] = 0.4 * here[N - 1] +
                         0.1 * (up[N - 1] + down[N - 1] + left[N - 1] + right[N - 1] + here[N - 2] + here[0]);
        }
}

static double mean(const double *values) {
    double sum = 0;
    for (size_t i = 0; i < (size_t)N * N * N; i++) sum += values[i];
    return sum / ((double)N * N * N);
}

int main(void) {
    const size_t all = (size_t)N * N * N;
    double *a = malloc(all * sizeof *a), *b = malloc(all * sizeof *b);
    if (!a || !b) return 1;
    for (size_t i = 0; i < all; i++) {
        a[i] = (double)(i % 101);
        b[i] = 0;
    }
    const double before = mean(a), begun = seconds();
    for (int i = 0; i < SWEEPS; i++) {
        sweep(b, a);
        sweep(a, b);
    }
    const double took = seconds() - begun;
    if (!(fabs(mean(a) - before) < 1e-9 * before)) return 2;
    printf("Time: %.6f s\nDONE\n", took);
    return 0;
}
