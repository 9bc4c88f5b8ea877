// Who meets whom and when, if all pairs of ranks are to meet and many at once.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace paribus {

constexpr int nobody = -1;

using Duel = std::pair<int, int>;  // the lower rank first
using Round = std::vector<Duel>;   // no rank is in two of them

// Everyone meets everyone once, by the circle method: n - 1 rounds of n / 2 pairs; for an odd n it
// is n rounds, one rank idle in each. Who sits where and which round comes first is drawn.
inline std::vector<Round> tournament(int ranks, std::mt19937_64& dice) {
    std::vector<int> circle(static_cast<std::size_t>(ranks));
    std::iota(circle.begin(), circle.end(), 0);
    std::shuffle(circle.begin(), circle.end(), dice);
    if (ranks % 2 != 0) circle.push_back(nobody);
    const std::size_t n = circle.size();
    std::vector<Round> rounds;
    for (std::size_t r = 0; r + 1 < n; ++r) {
        Round round;
        for (std::size_t i = 0; i < n / 2; ++i) {
            const auto [low, high] = std::minmax(circle[i], circle[n - 1 - i]);
            if (low != nobody) round.emplace_back(low, high);
        }
        rounds.push_back(round);
        std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
    }
    std::shuffle(rounds.begin(), rounds.end(), dice);
    return rounds;
}

// The same pairs in rounds of at most `at_once`.
inline std::vector<Round> packed(std::vector<Duel> duels, std::size_t at_once, int ranks) {
    std::vector<Round> rounds;
    while (!duels.empty()) {
        Round round;
        std::vector<Duel> left;
        std::vector<char> taken(static_cast<std::size_t>(ranks));
        for (const Duel& duel : duels) {
            char& low = taken[static_cast<std::size_t>(duel.first)];
            char& high = taken[static_cast<std::size_t>(duel.second)];
            if (round.size() == at_once || low || high) {
                left.push_back(duel);
            } else {
                low = high = 1;
                round.push_back(duel);
            }
        }
        rounds.push_back(round);
        duels = left;
    }
    return rounds;
}

// Rank 0's rounds, on all ranks. Collective.
inline std::vector<Round> rounds_of_rank_0(const std::vector<Round>& mine, int rank) {
    std::vector<int> flat;
    for (const Round& round : mine) {
        flat.push_back(static_cast<int>(round.size()));
        for (const Duel& duel : round) flat.insert(flat.end(), {duel.first, duel.second});
    }
    int length = static_cast<int>(flat.size());
    MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
    flat.resize(static_cast<std::size_t>(length));
    MPI_Bcast(flat.data(), length, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) return mine;
    std::vector<Round> rounds;
    for (std::size_t at = 0; at < flat.size();) {
        Round round(static_cast<std::size_t>(flat[at++]));
        for (Duel& duel : round) {
            duel = {flat[at], flat[at + 1]};
            at += 2;
        }
        rounds.push_back(round);
    }
    return rounds;
}

}  // namespace paribus
