// Alltoallv: as alltoall, with messages of uneven sizes.
#include <climits>
#include <cstdint>
#include <numeric>

#include "common/collective.hpp"

using namespace paribus;

// From 0 to 1, even; the same on every machine. Vigna's splitmix64 of the seed and the number.
static double drawn(std::uint64_t seed, std::uint64_t number) {
    std::uint64_t z = (seed << 32) + (number + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

struct Alltoallv : Collective {
    static constexpr Option options[] = {{"seed", "1", "draws the sizes", 1, 2147483647}, {}};
    static constexpr Spec spec() {
        Spec spec =
            collective("alltoallv", "Time of MPI_Alltoallv with uneven sizes, slowest rank.");
        spec.out_for_each_rank = true;
        spec.in_for_each_rank = true;
        spec.likes = false;
        spec.options = options;
        return spec;
    }
    Alltoallv(Session& s, long bytes) : Collective(s, bytes) {
        const auto n = static_cast<std::size_t>(ranks);
        const auto seed = static_cast<std::uint64_t>(s.arguments.numbers.at("seed").front());
        // To the rank `apart` further on, as much more than the mean as less the other way round:
        // so each rank sends and receives in all what it does in alltoall.
        apart.assign(n, count);
        for (std::size_t d = 1; 2 * d < n; ++d) {
            apart[d] = static_cast<int>(drawn(seed, d) * (2.0 * count + 1));
            apart[n - d] = 2 * count - apart[d];
        }
        for (int r = 0; r < ranks; ++r) {
            sent.push_back(between(rank, r));
            got.push_back(between(r, rank));
        }
        sent_at.resize(n);
        got_at.resize(n);
        std::partial_sum(sent.begin(), sent.end() - 1, sent_at.begin() + 1);
        std::partial_sum(got.begin(), got.end() - 1, got_at.begin() + 1);
    }
    int between(int from, int to) const {
        return apart[static_cast<std::size_t>((to - from + ranks) % ranks)];
    }

    void call(long) const {
        MPI_Alltoallv(out.data, sent.data(), sent_at.data(), MPI_BYTE, in.data, got.data(),
                      got_at.data(), MPI_BYTE, comm);
    }
    void prepare() const {
        for (int r = 0; r < ranks; ++r) {
            const auto at = static_cast<std::size_t>(r);
            fill(out.data + sent_at[at], static_cast<std::size_t>(sent[at]), rank, r, salt);
            poison(in.data + got_at[at], static_cast<std::size_t>(got[at]), r, rank, salt);
        }
    }
    long wrong() const {
        for (int r = 0; r < ranks; ++r) {
            const auto at = static_cast<std::size_t>(r);
            const long wrong =
                first_wrong(in.data + got_at[at], static_cast<std::size_t>(got[at]), r, rank, salt);
            if (wrong >= 0) return got_at[at] + wrong;
        }
        return -1;
    }
    std::string more() const { return Object().add("sizes", apart).text(); }

    std::vector<int> apart, sent, got, sent_at, got_at;
};

int main(int argc, char** argv) {
    Session session(Alltoallv::spec());
    session.start(argc, argv);
    const auto& sizes = session.arguments.bytes;
    const long largest = *std::max_element(sizes.begin(), sizes.end());
    if (largest > INT_MAX / session.ranks)
        session.refuse("--bytes: a rank sends more in all than MPI counts (2147483647 bytes)");
    measure<Alltoallv>(session);
    return session.finish();
}
