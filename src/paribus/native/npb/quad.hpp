// Four numbers at once, by the compiler's vectors, which GCC and Clang split up where those of the
// processor are shorter. A function template takes one number or four.
#pragma once

#include "vectors.hpp"

namespace paribus::npb {

constexpr long quad = 4;
using Quad = double __attribute__((vector_size(quad * sizeof(double))));
using QuadInRow =
    double __attribute__((vector_size(quad * sizeof(double)), aligned(sizeof(double)), may_alias));

// How many numbers a row of n takes that is read and written four at a time.
constexpr long whole_quads(long n) { return (n + quad - 1) / quad * quad; }

PARIBUS_WITHIN void load(double& to, const double* from) { to = *from; }
PARIBUS_WITHIN void load(Quad& to, const double* from) {
    to = *reinterpret_cast<const QuadInRow*>(from);
}
PARIBUS_WITHIN void store(double* to, double from) { *to = from; }
PARIBUS_WITHIN void store(double* to, const Quad& from) {
    *reinterpret_cast<QuadInRow*>(to) = from;
}

}  // namespace paribus::npb
