// The state probe: three figures that tell which of its states a machine is in just now.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace paribus {

struct State {
    double core_to_core_ns = NAN;  // a cache line from one core to another: half a round trip
    double triad_gbps = NAN;       // a[i] = b[i] + s * c[i] on one core, 24 bytes per element
    double clock_ghz = NAN;        // dependent additions per nanosecond: one each cycle

    std::string text() const;
};

constexpr double triad_bytes = 24 << 20;  // of the probe's three arrays

// Takes the three figures on this rank's core, about 15 ms; `others` are the cores of ranks on
// this machine, tried before any other core that this rank may use. The triad only with `memory`.
// Every other rank must sleep.
State probe_state(const std::vector<int>& others, bool memory);

}  // namespace paribus
