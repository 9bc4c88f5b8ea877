// The random numbers of the NAS Parallel Benchmarks: x' = a x mod 2^46 with a = 5^13, as a number
// in (0, 1) x / 2^46 (Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, section 2.3).
#pragma once

#include <cstdint>

namespace paribus::npb {

constexpr std::uint64_t multiplier = 1220703125;  // 5^13
constexpr std::uint64_t modulus_mask = (std::uint64_t{1} << 46) - 1;

// 2^46 divides 2^64, so what a product loses above 64 bits is never needed.
constexpr std::uint64_t times(std::uint64_t a, std::uint64_t x) { return a * x & modulus_mask; }

constexpr std::uint64_t power(std::uint64_t a, std::uint64_t exponent) {
    std::uint64_t result = 1;
    for (; exponent > 0; exponent /= 2, a = times(a, a))
        if (exponent % 2 == 1) result = times(result, a);
    return result;
}

constexpr double unit(std::uint64_t x) { return static_cast<double>(x) * 0x1p-46; }

struct Random {
    std::uint64_t x;  // the seed, then the number drawn last

    double next() {
        x = times(multiplier, x);
        return unit(x);
    }
    void skip(std::uint64_t draws) { x = times(power(multiplier, draws), x); }
};

}  // namespace paribus::npb
