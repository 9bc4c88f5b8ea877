// Several numbers at once, by the compiler's vectors, which GCC and Clang split up where the
// processor's are shorter.
#pragma once

#include <cstring>

// Compiled twice, and chosen where the program runs: hosts with other processors may share its
// file. FMA comes with vectors of four numbers.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define PARIBUS_FOR_EACH_PROCESSOR __attribute__((target_clones("default", "fma")))
#else
#define PARIBUS_FOR_EACH_PROCESSOR
#endif

// A function that is called by such a one must become part of it, or it is compiled for any.
#define PARIBUS_INLINE inline __attribute__((always_inline))

namespace paribus::npb {

constexpr long lanes = 4;
using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));

// How many numbers a row of n takes that is read and written in whole vectors.
constexpr long whole_lanes(long n) { return (n + lanes - 1) / lanes * lanes; }

template <class Real>
PARIBUS_INLINE void load(Real& to, const double* from) {
    std::memcpy(&to, from, sizeof to);
}

template <class Real>
PARIBUS_INLINE void store(double* to, const Real& from) {
    std::memcpy(to, &from, sizeof from);
}

}  // namespace paribus::npb
