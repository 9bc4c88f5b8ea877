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

inline Clock examine_clock() {
    Clock clock;
    constexpr int readings = 2000;
    std::vector<std::int64_t> step(readings);
    std::int64_t last = now_ns();
    for (auto& d : step) {
        const std::int64_t t = now_ns();
        d = t - last;
        last = t;
    }
    // Readings lie at multiples of the tick, so the steps between them, and the differences of
    // those, do too; a step alone would only show the cost of a reading.
    std::sort(step.begin(), step.end());
    std::int64_t tick = 1000000, previous = 0;
    for (const auto d : step) {
        if (d > previous) tick = std::min(tick, d - previous);
        previous = d;
    }
    clock.tick_ns = static_cast<double>(tick);

    constexpr int rounds = 20, each = 200;
    double cost = 1e9, spent = 1e9;
    for (int r = 0; r < rounds; ++r) {
        const std::int64_t start = now_ns();
        for (int i = 1; i < each; ++i) now_ns();
        cost = std::min(cost, static_cast<double>(now_ns() - start) / each);
    }
    constexpr std::uint64_t loops = 20000;
    for (int r = 0; r < 7; ++r) {
        const std::int64_t start = now_ns();
        spin(loops);
        spent = std::min(spent, (static_cast<double>(now_ns() - start) - cost) / loops);
    }
    clock.cost_ns = cost;
    clock.spin_ns = spent;
    return clock;
}

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
