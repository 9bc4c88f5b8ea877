// What the collectives share: their unit, and blocks of data, one for each rank.
#pragma once

#include "cases.hpp"

namespace paribus {

struct Collective : Case {
    using Case::Case;

    // The description of a collective, but for its name and summary.
    static constexpr Spec collective(const char* name, const char* summary) {
        Spec spec;
        spec.name = name;
        spec.summary = summary;
        spec.ranks = Ranks::several;
        spec.metric = "time";
        spec.unit = "us";
        spec.osu_iterations = 1000;
        spec.osu_warmup = 100;
        spec.osu_large_iterations = 100;
        spec.osu_large_warmup = 10;
        return spec;
    }
    double figure(double ns) const { return 1e-3 * ns; }
    std::size_t expected() const { return received; }

    unsigned char* block(const Buffer& buffer, int r) const {
        return buffer.data + static_cast<std::size_t>(r) * size;
    }
    // Blocks of `in`, one from each rank, sent to `receiver`: before they came, and the first
    // byte that is wrong.
    void poison_blocks(int receiver) const {
        for (int r = 0; r < ranks; ++r) poison(block(in, r), size, r, receiver, salt);
    }
    long wrong_block(int receiver) const {
        for (int r = 0; r < ranks; ++r) {
            const long wrong = first_wrong(block(in, r), size, r, receiver, salt);
            if (wrong >= 0) return wrong + static_cast<long>(r) * count;
        }
        return -1;
    }
};

}  // namespace paribus
