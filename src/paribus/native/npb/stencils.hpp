// The four operations of MG's grids, on some rows of one plane. A row's pointer is that of x = 0;
// points 1 to n of each axis are the grid's own, and the others copies of its neighbours'.
#pragma once

#include "vectors.hpp"

namespace paribus::npb {

// Weights of a point, of those that share a face, an edge and a corner with it.
struct Weights {
    double centre, face, edge, corner;
};

namespace stencil {

constexpr long longest_row = 1024 + 16;

// The operator of the equation (NPB report RNR-94-007, section 2.2.2).
constexpr Weights laplacian{-8. / 3, 0, 1. / 6, 1. / 12};

// out = v - A u, from x = 0 to n + 1.
PARIBUS_VECTORS inline void residual(double* out, long out_row, const double* v, const double* u,
                                     long row, long plane, long rows, long n) {
    alignas(64) double face_sums[longest_row], edge_sums[longest_row];
    double* const __restrict faces = face_sums + 8;
    double* const __restrict edges = edge_sums + 8;
    for (; rows > 0; --rows, out += out_row, v += row, u += row) {
        const double *const before = u - plane, *const after = u + plane;
        for (long x = -1; x <= n + 2; ++x) {
            faces[x] = (u[x - row] + u[x + row]) + (before[x] + after[x]);
            edges[x] = (before[x - row] + before[x + row]) + (after[x - row] + after[x + row]);
        }
        PARIBUS_INDEPENDENT
        for (long x = 0; x <= n + 1; ++x)
            out[x] = v[x] - laplacian.centre * u[x] -
                     laplacian.edge * (edges[x] + faces[x - 1] + faces[x + 1]) -
                     laplacian.corner * (edges[x - 1] + edges[x + 1]);
    }
}

// u = u + S r, from x = 1 to n; r's planes before, here and after.
PARIBUS_VECTORS inline void smooth(double* u, long row, const double* before, const double* here,
                                   const double* after, long r_row, long rows, long n,
                                   const Weights& weights) {
    alignas(64) double face_sums[longest_row], edge_sums[longest_row];
    double* const __restrict faces = face_sums + 8;
    double* const __restrict edges = edge_sums + 8;
    for (; rows > 0; --rows, u += row, before += r_row, here += r_row, after += r_row) {
        for (long x = 0; x <= n + 1; ++x) {
            faces[x] = (here[x - r_row] + here[x + r_row]) + (before[x] + after[x]);
            edges[x] =
                (before[x - r_row] + before[x + r_row]) + (after[x - r_row] + after[x + r_row]);
        }
        PARIBUS_INDEPENDENT
        for (long x = 1; x <= n; ++x)
            u[x] += weights.centre * here[x] +
                    weights.face * (here[x - 1] + here[x + 1] + faces[x]) +
                    weights.edge * (edges[x] + faces[x - 1] + faces[x + 1]);
    }
}

// The coarser grid's points j = 1 to n, of which each is the finer one's 2 j and half, a quarter,
// an eighth of those that share a face, an edge, a corner with it, halved. `rows` of the coarser.
PARIBUS_VECTORS inline void coarsen(double* out, long out_row, const double* before,
                                    const double* here, const double* after, long row, long rows,
                                    long n) {
    alignas(64) double sums[longest_row];
    double* const __restrict across = sums + 8;
    for (; rows > 0; --rows, out += out_row, before += 2 * row, here += 2 * row, after += 2 * row) {
        for (long x = 1; x <= 2 * n + 1; ++x)
            across[x] =
                .5 * here[x] + .25 * ((here[x - row] + here[x + row]) + (before[x] + after[x])) +
                .125 * ((before[x - row] + before[x + row]) + (after[x - row] + after[x + row]));
        PARIBUS_INDEPENDENT
        for (long x = 1; x <= n; ++x)
            out[x] = across[2 * x] + .5 * (across[2 * x - 1] + across[2 * x + 1]);
    }
}

// Rows y to end - 1 of u = Q c, or of u + Q c, from x = -1 to 2 n + 2: at even points it is the
// coarser grid's value, at odd ones the mean of those around, here of planes `lower` and `upper`.
// Rows of u begin at y, of c at 0.
PARIBUS_VECTORS inline void interpolate(double* u, long row, bool add, const double* lower,
                                        const double* upper, long c_row, long y, long end, long n) {
    alignas(64) double means[longest_row];
    double* const __restrict made = means + 8;
    for (; y < end; ++y, u += row) {
        const long at = (y - (y & 1)) / 2 * c_row, next = at + (y & 1) * c_row;
        const double* mean = lower + at;
        if (lower != upper || next != at) {
            for (long x = -1; x <= n + 1; ++x)
                made[x] =
                    .25 * ((lower[at + x] + lower[next + x]) + (upper[at + x] + upper[next + x]));
            mean = made;
        }
        double* const __restrict to = u;
        if (add)
            for (long x = 0; x <= n + 1; ++x) {
                to[2 * x - 1] += .5 * (mean[x - 1] + mean[x]);
                to[2 * x] += mean[x];
            }
        else
            for (long x = 0; x <= n + 1; ++x) {
                to[2 * x - 1] = .5 * (mean[x - 1] + mean[x]);
                to[2 * x] = mean[x];
            }
    }
}

PARIBUS_VECTORS inline double squares(const double* r, long n) {
    double sums[8] = {};
    long x = 1;
    for (; x + 7 <= n; x += 8)
        for (long l = 0; l < 8; ++l) sums[l] += r[x + l] * r[x + l];
    for (; x <= n; ++x) sums[0] += r[x] * r[x];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace stencil
}  // namespace paribus::npb
