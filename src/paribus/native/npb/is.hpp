// IS, integer sort: the ranks of keys that a bucket sort over all processes finds, ten times (NPB
// report RNR-94-007, section 2.2.6, and NPB 3.3, is.c, for the official values).
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "random.hpp"
#include "run.hpp"

namespace paribus::npb {

struct Is {
    static constexpr Kind kind{"is", "NPB IS: sort of integer keys, random access and all-to-all.",
                               true};
    InMpi in_mpi;

    explicit Is(const Launch& l) : launch_(l), problem_(problem(l.size)) {
        const auto ranks = static_cast<std::size_t>(l.ranks);
        keys_.resize(static_cast<std::size_t>(1L << problem_.log2_keys) / ranks);
        by_bucket_.resize(keys_.size());
        for (auto* const counts : {&send_, &send_at_, &receive_, &receive_at_})
            counts->resize(ranks);
        buckets_ = std::size_t{1} << problem_.log2_buckets;
        mine_.resize(buckets_);
        all_.resize(buckets_ + tests);
        draw_keys();
    }

    // Keys, the same by bucket, what comes from others with a tenth for what is uneven, and a part
    // of them in order; and their counts.
    static double bytes(const Launch& l) {
        const Problem p = problem(l.size);
        const double arrays = 2 + 1.1 * (l.ranks - 1) / l.ranks + 3.0 / parts;
        return 4 * (arrays * std::exp2(p.log2_keys) + std::exp2(p.log2_largest)) / l.ranks;
    }
    // Counters of 32 bits: NPB 3.3 demands as much.
    static long least_ranks(char size) { return size == 'D' ? 4 : 1; }
    static long most_ranks(char size) { return 1L << problem(size).log2_buckets; }
    double operations() const { return rounds * std::exp2(problem_.log2_keys); }

    void prepare() {
        std::copy(first_keys_.begin(), first_keys_.end(), keys_.begin());
        failed_ = 0;
    }

    void run() {
        for (int round = 1; round <= rounds; ++round) {
            if (launch_.rank == 0) {
                keys_[static_cast<std::size_t>(round)] = round;
                keys_[static_cast<std::size_t>(round + rounds)] =
                    (1 << problem_.log2_largest) - round;
            }
            sort_into_buckets();
            share_out();
            rank_keys();
            check_tests(round);
        }
    }

    // The official partial verification counts while it runs; the full one puts the keys in order.
    std::string wrong() {
        long failed = failed_, all = 0;
        if (!in_order()) ++failed;
        MPI_Allreduce(&failed, &all, 1, MPI_LONG, MPI_SUM, launch_.comm);
        return all == 0 ? "" : std::to_string(all) + " ranks of keys or orders of a process";
    }
    std::size_t checked() const { return count_; }
    void corrupt() { ++kept().first[own_ / 2]; }  // one of many that are equal

private:
    static constexpr int rounds = 10, tests = 5;
    static constexpr std::size_t within_caches = 1 << 21;  // keys
    static constexpr std::size_t parts = 8;  // in which the order of the keys is looked at

    // Of the keys at `index` NPB knows the rank, which in round i is `rank` + `sign` (i - `less`).
    struct Problem {
        int log2_keys, log2_largest, log2_buckets;
        std::array<long, tests> index, rank;
        std::array<int, tests> sign, less;
    };
    static constexpr Problem problem(char size) {
        switch (size) {
            case 'S':
                return {16,
                        11,
                        9,
                        {48427, 17148, 23627, 62548, 4431},
                        {0, 18, 346, 64917, 65463},
                        {1, 1, 1, -1, -1},
                        {}};
            case 'W':
                return {20,
                        16,
                        10,
                        {357773, 934767, 875723, 898999, 404505},
                        {1249, 11698, 1039987, 1043896, 1048018},
                        {1, 1, -1, -1, -1},
                        {2, 2}};
            case 'A':
                return {23,
                        19,
                        10,
                        {2112377, 662041, 5336171, 3642833, 4250760},
                        {104, 17523, 123928, 8288932, 8388264},
                        {1, 1, 1, -1, -1},
                        {1, 1, 1, 1, 1}};
            case 'B':
                return {25,
                        21,
                        10,
                        {41869, 812306, 5102857, 18232239, 26860214},
                        {33422937, 10244, 59149, 33135281, 99},
                        {-1, 1, 1, -1, 1},
                        {}};
            case 'C':
                return {27,
                        23,
                        10,
                        {44172927, 72999161, 74326391, 129606274, 21736814},
                        {61147, 882988, 266290, 133997595, 133525895},
                        {1, 1, 1, -1, -1},
                        {}};
            default:
                return {31,
                        27,
                        10,
                        {1317351170, 995930646, 1157283250, 1503301535, 1453734525},
                        {1, 36538729, 1978098519, 2145192618, 2147425337},
                        {1, 1, -1, -1, -1},
                        {}};
        }
    }

    // A key is a quarter of the largest times the sum of four random numbers.
    void draw_keys() {
        Random random{314159265};
        random.skip(4 * keys_.size() * static_cast<std::size_t>(launch_.rank));
        const double quarter = std::exp2(problem_.log2_largest - 2);
        for (int& key : keys_) {
            double sum = random.next();
            for (int draw = 1; draw < 4; ++draw) sum += random.next();
            key = static_cast<int>(quarter * sum);
        }
        std::copy_n(keys_.begin(), first_keys_.size(), first_keys_.begin());
    }

    void sort_into_buckets() {
        switch (shift()) {  // a constant is a faster shift
            case 2:
                return sort_into_buckets<2>();
            case 6:
                return sort_into_buckets<6>();
            case 9:
                return sort_into_buckets<9>();
            case 11:
                return sort_into_buckets<11>();
            case 13:
                return sort_into_buckets<13>();
            default:
                return sort_into_buckets<17>();
        }
    }

    // Four counters for each bucket: to count a key, one would wait until the last is stored.
    template <int shift>
    void sort_into_buckets() {
        constexpr std::size_t lanes = 4;
        std::vector<int> counts(lanes * buckets_);
        std::array<int*, lanes> of_lane;
        for (std::size_t lane = 0; lane < lanes; ++lane)
            of_lane[lane] = counts.data() + lane * buckets_;
        std::size_t k = 0;
        for (; k + lanes <= keys_.size(); k += lanes)
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ++of_lane[lane][keys_[k + lane] >> shift];
        for (; k < keys_.size(); ++k) ++of_lane[0][keys_[k] >> shift];
        int before = 0;
        for (std::size_t b = 0; b < buckets_; ++b) {
            mine_[b] = 0;
            for (const int* of : of_lane) mine_[b] += of[b];
            of_lane[0][b] = before;
            before += mine_[b];
        }
        if (keys_.size() > within_caches) fill_buckets<shift, true>(of_lane[0]);
        else fill_buckets<shift, false>(of_lane[0]);
    }

    // No processor foresees as many places as there are buckets.
    template <int shift, bool fetch>
    void fill_buckets(int* next) {
        constexpr std::size_t at_once = 4;  // are read before one is written
        const std::size_t whole = keys_.size() / at_once * at_once;
        const auto put = [&](int key) {
            int* const place = by_bucket_.data() + next[key >> shift]++;
            *place = key;
            if constexpr (fetch) __builtin_prefetch(place + 16, 1);
        };
        for (std::size_t k = 0; k < whole; k += at_once) {
            const int a = keys_[k], b = keys_[k + 1], c = keys_[k + 2], d = keys_[k + 3];
            put(a);
            put(b);
            put(c);
            put(d);
        }
        for (std::size_t k = whole; k < keys_.size(); ++k) put(keys_[k]);
    }

    // Sends each bucket to the process whose share of all keys it begins in, so that all get about
    // as many; leaves those of others for this one in `received_`, while its own stay where they
    // are. Empty entries of `all_` carry test keys.
    void share_out() {
        std::vector<int> counts(all_.size());
        std::copy(mine_.begin(), mine_.end(), counts.begin());
        for (std::size_t t = 0; t < tests; ++t) {
            const long at = problem_.index[t] - launch_.rank * static_cast<long>(keys_.size());
            if (at >= 0 && at < static_cast<long>(keys_.size()))
                counts[buckets_ + t] = keys_[static_cast<std::size_t>(at)];
        }
        const int n = static_cast<int>(counts.size());
        in_mpi(
            [&] { MPI_Allreduce(counts.data(), all_.data(), n, MPI_INT, MPI_SUM, launch_.comm); });
        std::fill(send_.begin(), send_.end(), 0);
        const long share = static_cast<long>(keys_.size());
        long before = 0, owner = 0;
        lesser_ = 0;
        count_ = first_bucket_ = end_bucket_ = 0;
        for (std::size_t b = 0; b < buckets_; ++b) {
            while (owner + 1 < launch_.ranks && before >= (owner + 1) * share) ++owner;
            send_[static_cast<std::size_t>(owner)] += mine_[b];
            if (owner < launch_.rank) {
                first_bucket_ = b + 1;
                lesser_ += all_[b];
            } else if (owner == launch_.rank) {
                count_ += static_cast<std::size_t>(all_[b]);
                end_bucket_ = b + 1;
            }
            before += all_[b];
        }
        end_bucket_ = std::max(end_bucket_, first_bucket_);
        for (std::size_t r = 1; r < send_.size(); ++r) send_at_[r] = send_at_[r - 1] + send_[r - 1];
        own_ = static_cast<std::size_t>(
            std::exchange(send_[static_cast<std::size_t>(launch_.rank)], 0));
        in_mpi([&] {
            MPI_Alltoall(send_.data(), 1, MPI_INT, receive_.data(), 1, MPI_INT, launch_.comm);
        });
        for (std::size_t r = 1; r < send_.size(); ++r)
            receive_at_[r] = receive_at_[r - 1] + receive_[r - 1];
        make_room(received_, count_ - own_);
        in_mpi([&] {
            MPI_Alltoallv(by_bucket_.data(), send_.data(), send_at_.data(), MPI_INT,
                          received_.data(), receive_.data(), receive_at_.data(), MPI_INT,
                          launch_.comm);
        });
    }

    // What is there already is not copied to a larger place, and the next rounds need little more.
    static void make_room(std::vector<int>& numbers, std::size_t n) {
        if (n <= numbers.size()) return;
        numbers = {};
        numbers.resize(n + n / 64);
    }

    using Keys = std::pair<int*, int*>;
    Keys kept() {
        int* const first = by_bucket_.data() + send_at_[static_cast<std::size_t>(launch_.rank)];
        return {first, first + own_};
    }
    Keys received() { return {received_.data(), received_.data() + (count_ - own_)}; }

    // Leaves in `up_to_` how many keys of this process are not greater than each value.
    void rank_keys() {
        least_ = static_cast<int>(first_bucket_) << shift();
        up_to_.assign((end_bucket_ - first_bucket_) << shift(), 0);
        int* const counts = up_to_.data();
        const int least = least_;
        for (const auto& [first, end] : {kept(), received()})
            for (const int* key = first; key != end; ++key) ++counts[*key - least];
        int sum = 0;
        for (int& count : up_to_) count = sum += count;
    }

    // A key's rank is how many keys are less; a test key that no process holds is a failure too.
    void check_tests(int round) {
        for (std::size_t t = 0; t < tests; ++t) {
            const long at = all_[buckets_ + t] - least_;
            if (at < 0 || at >= static_cast<long>(up_to_.size())) continue;
            const long rank = lesser_ + (at > 0 ? up_to_[static_cast<std::size_t>(at - 1)] : 0);
            if (rank != problem_.rank[t] + problem_.sign[t] * (round - problem_.less[t])) ++failed_;
        }
    }

    // Whether the keys lie in order when each is put where its rank says, here and from one
    // process to the next: part by part of the values, which takes less memory. Changes `up_to_`,
    // which the next round overwrites.
    bool in_order() {
        constexpr int none = std::numeric_limits<int>::max();
        const auto values = static_cast<long>(up_to_.size());
        int begin = 0;
        for (long part = 0; part < static_cast<long>(parts); ++part) {
            const long from = values * part / static_cast<long>(parts);
            const long to = values * (part + 1) / static_cast<long>(parts);
            const int end = to > from ? up_to_[static_cast<std::size_t>(to - 1)] : begin;
            if (end < begin) return false;
            std::vector<int> sorted(static_cast<std::size_t>(end - begin), none);
            for (const auto& [first, last] : {kept(), received()}) {
                for (const int* key = first; key != last; ++key) {
                    const long at = *key - least_;
                    if (at < 0 || at >= values) return false;
                    if (at < from || at >= to) continue;
                    const int place = --up_to_[static_cast<std::size_t>(at)] - begin;
                    if (place < 0 || place >= end - begin) return false;
                    sorted[static_cast<std::size_t>(place)] = *key;
                }
            }
            if (!std::is_sorted(sorted.begin(), sorted.end())) return false;
            if (!sorted.empty() && sorted.back() == none) return false;
            begin = end;
        }
        return begin == static_cast<int>(count_);
    }

    int shift() const { return problem_.log2_largest - problem_.log2_buckets; }

    const Launch launch_;
    const Problem problem_;
    std::array<int, 2 * rounds + 1> first_keys_{};  // as they are before a round alters them
    std::vector<int> keys_, by_bucket_, received_, up_to_;  // by_bucket_ keeps what is kept
    std::vector<int> mine_, send_, send_at_, receive_, receive_at_;
    std::vector<int> all_;  // keys of all processes in each bucket, then the test keys
    std::size_t buckets_ = 0, first_bucket_ = 0, end_bucket_ = 0;
    std::size_t count_ = 0, own_ = 0;  // keys that this process ranks, and those that it had
    int least_ = 0;
    long lesser_ = 0, failed_ = 0;
};

}  // namespace paribus::npb
