// What loops over many numbers need to be fast on any machine.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

// Before a function that takes most of the time: it is compiled for several instruction sets, and
// the one to call is chosen where the program runs, because hosts with other processors may share
// its file. At -O2, GCC takes one number at a time in most loops.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define PARIBUS_VECTORS __attribute__((optimize("O3"), target_clones("default", "fma", "avx512f")))
#elif defined(__GNUC__) && !defined(__clang__)
#define PARIBUS_VECTORS __attribute__((optimize("O3")))
#else
#define PARIBUS_VECTORS
#endif

// Before what such a function calls for each number: code for its instruction set needs its body.
#define PARIBUS_WITHIN __attribute__((always_inline)) inline

// Before a loop of which no pass reads or writes what another one writes.
#if defined(__clang__)
#define PARIBUS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PARIBUS_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace paribus::npb {

// Begins where a line of a cache does.
template <class Number>
struct Aligned {
    using value_type = Number;
    Aligned() = default;
    template <class Other>
    explicit Aligned(const Aligned<Other>&) {}
    Number* allocate(std::size_t n) {
        return static_cast<Number*>(::operator new(n * sizeof(Number), std::align_val_t{64}));
    }
    void deallocate(Number* numbers, std::size_t) {
        ::operator delete(numbers, std::align_val_t{64});
    }
    bool operator==(const Aligned&) const { return true; }
    bool operator!=(const Aligned&) const { return false; }
};

using Reals = std::vector<double, Aligned<double>>;

}  // namespace paribus::npb
