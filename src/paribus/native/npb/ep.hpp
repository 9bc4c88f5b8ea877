// EP, embarrassingly parallel: pairs of Gaussian deviates by the polar method, their sums, and how
// many lie in each square annulus (NPB report RNR-94-007, section 2.2.1). Messages only at the end.
#pragma once

#include <array>

#include "random.hpp"
#include "run.hpp"

namespace paribus::npb {

struct Ep {
    static constexpr Kind kind{"ep", "NPB EP: pairs of Gaussian deviates, almost no messages.",
                               false};
    InMpi in_mpi;

    explicit Ep(const Launch& l) : launch_(l), problem_(problem(l.size)) {}

    static double bytes(const Launch&) { return sizeof(Ep); }
    static long least_ranks(char) { return 1; }
    static long most_ranks(char size) { return 1L << (problem(size).log2_pairs - log2_block); }
    double operations() const { return std::exp2(problem_.log2_pairs + 1); }
    void prepare() { found_ = {}; }

    void run() {
        const long blocks = most_ranks(launch_.size), ranks = launch_.ranks;
        const long first = blocks * launch_.rank / ranks, end = blocks * (launch_.rank + 1) / ranks;
        Random random{271828183};
        random.skip(static_cast<std::uint64_t>(first) << (log2_block + 1));
        // The next lane continues where this one stops, so the first has drawn once already.
        for (std::uint64_t& lane : lanes_) {
            random.next();
            lane = random.x;
        }
        std::array<double, 2 + annuli> mine{};
        for (long part = (end - first) << (log2_block - log2_part); part > 0; --part) tally(mine);
        in_mpi([&] {
            MPI_Allreduce(mine.data(), found_.data(), 2 + annuli, MPI_DOUBLE, MPI_SUM,
                          launch_.comm);
        });
    }

    std::string wrong() const {
        return both(differs("the sum of x", found_[0], problem_.x, 1e-8),
                    differs("the sum of y", found_[1], problem_.y, 1e-8));
    }
    std::size_t checked() const { return 2; }
    void corrupt() { found_[1] += 1; }

private:
    static constexpr int log2_block = 16;  // pairs that the ranks share out
    static constexpr int log2_part = 8;    // pairs that stay in the nearest cache
    static constexpr int part_pairs = 1 << log2_part;
    static constexpr int annuli = 10;
    static constexpr int lanes = 8;

    struct Problem {
        int log2_pairs;
        double x, y;  // official sums: NPB 3.3, ep.f
    };
    static constexpr Problem problem(char size) {
        switch (size) {
            case 'S':
                return {24, -3.247834652034740e+3, -6.958407078382297e+3};
            case 'W':
                return {25, -2.863319731645753e+3, -6.320053679109499e+3};
            case 'A':
                return {28, -4.295875165629892e+3, -1.580732573678431e+4};
            case 'B':
                return {30, 4.033815542441498e+4, -2.660669192809235e+4};
            case 'C':
                return {32, 4.764367927995374e+4, -8.084072988043731e+4};
            default:
                return {36, 1.982481200946593e+5, -1.020596636361769e+5};
        }
    }

    // Adds one part's sums of x and y, and its counts, to `mine`. Random numbers are drawn in
    // lanes that do not wait for each other, and pairs outside the circle are dropped without a
    // branch: one of five is, which no processor foresees.
    void tally(std::array<double, 2 + annuli>& mine) {
        constexpr std::uint64_t leap = power(multiplier, lanes);
        std::array<double, part_pairs> xs, ys, squares;
        std::array<double, lanes> drawn;
        std::size_t kept = 0;
        for (int i = 0; i < part_pairs; i += lanes / 2) {
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                drawn[lane] = 2 * unit(lanes_[lane]) - 1;
                lanes_[lane] = times(leap, lanes_[lane]);
            }
            for (std::size_t lane = 0; lane < lanes; lane += 2) {
                const double x = drawn[lane], y = drawn[lane + 1], square = x * x + y * y;
                xs[kept] = x;
                ys[kept] = y;
                squares[kept] = square;
                kept += square <= 1;
            }
        }
        for (std::size_t i = 0; i < kept; ++i) {
            const double factor = std::sqrt(-2 * std::log(squares[i]) / squares[i]);
            const double x = xs[i] * factor, y = ys[i] * factor;
            mine[0] += x;
            mine[1] += y;
            mine[2 + static_cast<std::size_t>(std::max(std::abs(x), std::abs(y)))] += 1;
        }
    }

    const Launch launch_;
    const Problem problem_;
    std::array<std::uint64_t, lanes> lanes_{};
    std::array<double, 2 + annuli> found_{};
};

}  // namespace paribus::npb
