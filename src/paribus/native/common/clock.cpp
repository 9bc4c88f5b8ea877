#include "clock.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paribus {

Clock examine_clock() {
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

}  // namespace paribus
