// The clock that every sample is read from, what reading it costs, and a busy wait of known length.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paribus {

inline std::int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// A chain of operations that each need the one before: the compiler and the processor can neither
// fold nor overlap them, so the time is proportional to `loops` and finer than the clock. What
// follows must not start before the chain has ended: without the fence a processor that works out
// of order hides up to 100 ns of it behind the next send.
inline void spin(std::uint64_t loops) {
    std::uint64_t x = loops;
    for (std::uint64_t i = 0; i < loops; ++i) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(x));
    }
#if defined(__x86_64__)
    asm volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

struct Clock {
    double tick_ns = 1;  // smallest step between readings
    double cost_ns = 0;  // one reading
    double spin_ns = 1;  // one loop of spin()

    // A sample must span this long to be known to 1 % of the clock's step.
    double least_sample_ns() const { return std::max(1000.0, 100 * tick_ns); }
};

Clock examine_clock();

// One reading per sample into memory that exists already: all that is done while measuring.
class Stamps {
public:
    explicit Stamps(long capacity) : at_(static_cast<std::size_t>(capacity), 0) {}
    void record() { at_[next_++] = now_ns(); }
    std::int64_t operator[](long i) const { return at_[static_cast<std::size_t>(i)]; }

private:
    std::vector<std::int64_t> at_;
    std::size_t next_ = 0;
};

}  // namespace paribus
