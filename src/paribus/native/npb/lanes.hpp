// Vector instructions: lines of a grid are computed several at once, each in a lane of its own.
#pragma once

#include <cstddef>

// PARIBUS_VECTORS stands before a function whose loops over lanes become vector instructions, which
// they do not at GCC's -O2. On x86-64 it is compiled for wider ones too, and the program chooses
// where it runs: hosts with other processors may share its file. PARIBUS_UNROLL stands before a
// short loop in such a loop, which could not be vectorised otherwise, and PARIBUS_INLINE before a
// function that is called by one of PARIBUS_VECTORS: called as it is it would not be for wide ones.
#if defined(__GNUC__) && !defined(__clang__)
#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12
#define PARIBUS_VECTORS                      \
    __attribute__((optimize("tree-vectorize"), \
                   target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#elif defined(__x86_64__) && defined(__GLIBC__)
#define PARIBUS_VECTORS \
    __attribute__((optimize("tree-vectorize"), target_clones("default", "avx2", "avx512f")))
#else
#define PARIBUS_VECTORS __attribute__((optimize("tree-vectorize")))
#endif
#define PARIBUS_UNROLL _Pragma("GCC unroll 8")
#elif defined(__clang__)
#define PARIBUS_VECTORS
#define PARIBUS_UNROLL _Pragma("unroll")
#else
#define PARIBUS_VECTORS
#define PARIBUS_UNROLL
#endif
#if defined(__GNUC__)
#define PARIBUS_INLINE inline __attribute__((always_inline))
#else
#define PARIBUS_INLINE inline
#endif

namespace paribus::npb {

constexpr int lanes = 8;

// One number of each line.
struct alignas(lanes * sizeof(double)) Lanes {
    double at[lanes];

    double& operator[](int lane) { return at[lane]; }
    const double& operator[](int lane) const { return at[lane]; }
};

}  // namespace paribus::npb
