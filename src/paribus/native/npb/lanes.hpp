// Points side by side, each in a lane of its own: a loop over lanes becomes vector instructions.
#pragma once

#include "vectors.hpp"

// Before a short loop within a loop over lanes, which would not become vector instructions with it.
#if defined(__clang__)
#define PARIBUS_UNROLL _Pragma("unroll")
#else
#define PARIBUS_UNROLL _Pragma("GCC unroll 8")
#endif

namespace paribus::npb::adi {

constexpr int lanes = 8;

// One number of each point.
struct alignas(lanes * sizeof(double)) Lanes {
    double at[lanes];

    PARIBUS_WITHIN double& operator[](int lane) { return at[lane]; }
    PARIBUS_WITHIN const double& operator[](int lane) const { return at[lane]; }
};

}  // namespace paribus::npb::adi
