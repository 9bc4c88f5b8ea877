// MG, multigrid: V-cycles for a Poisson equation on a periodic cube (NPB report RNR-94-007, section
// 2.2.2, and NPB 3.3, mg.f, for the official values).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "random.hpp"
#include "run.hpp"
#include "stencils.hpp"

namespace paribus::npb {

using Axes = std::array<long, 3>;  // x, y, z

// A process' part of the cube at one level: points 1 to n along each axis, and copies of the
// neighbours' two at each end. Where it is `whole`, the process has all, and no neighbours.
struct Level {
    Axes n;
    bool whole;
    long row, plane;
    Reals u, r;  // solution or correction, and residual; r of the finest is the right-hand side

    Level(const Axes& points, bool all)
        : n(points),
          whole(all),
          row((n[0] + 2 + first + 7) / 8 * 8),
          plane(row * (n[1] + 4)),
          u(static_cast<std::size_t>(plane * (n[2] + 4))),
          r(u.size()) {}

    long at(long x, long y, long z) const {
        return (z + 1) * plane + (y + 1) * row + x + first - 1;
    }

    static constexpr long first = 8;  // where x = 1 is: it begins a line of a cache
};

struct Mg {
    static constexpr Kind kind{"mg", "NPB MG: multigrid, nearby messages and memory bandwidth.",
                               true};
    InMpi in_mpi;

    // The processes halve the cube along z, y, x, z ... The coarsest levels, where messages would
    // take longer than computing, each of them has as a whole.
    explicit Mg(const Launch& l)
        : launch_(l), problem_(problem(l.size)), grid_(grid(l.ranks)), place_(place(l.rank)) {
        std::size_t side = 0, ring = 0, border = 0;
        for (long n = problem_.n; n >= 2; n /= 2) {
            const Axes part{n / grid_[0], n / grid_[1], n / grid_[2]};
            const bool all = l.ranks == 1 || (n < problem_.n && (n <= most_whole || part[2] < 2));
            levels_.emplace_back(all ? Axes{n, n, n} : part, all);
            if (all && l.ranks > 1 && parts_.empty()) {
                part_.resize(size(part[0] * part[1] * part[2] + 1));
                parts_.resize(size(n * n * n));
            }
            const Level& level = levels_.back();
            const Axes& m = level.n;
            side = std::max(side, size(2 * (m[0] + 4) * (std::max(m[1], m[2]) + 4)));
            ring = std::max(ring, size(3 * (tile(level) + 2) * level.row));
            border = std::max(border, size(2 * (m[2] + 2) * level.row));
        }
        for (auto* const buffer : {&out_[0], &out_[1], &in_[0], &in_[1]}) buffer->resize(side);
        ring_.resize(ring);
        border_.resize(border);
        charge();
    }

    // Both fields of the finest level, and a seventh of them for all others.
    static double bytes(const Launch& l) {
        const Axes parts = grid(l.ranks);
        double points = 1;
        for (const long p : parts) points *= static_cast<double>(problem(l.size).n / p + 4);
        return 16 * 8. / 7 * points;
    }
    static long least_ranks(char) { return 1; }
    // Four points at least along each axis.
    static long most_ranks(char size) {
        const long along = problem(size).n / 4;
        return along * along * along;
    }
    double operations() const { return 58 * std::pow(problem_.n, 3) * problem_.iterations; }
    void prepare() { std::fill(levels_[0].u.begin(), levels_[0].u.end(), 0.0); }

    void run() {
        double norm = descend_from_finest();
        for (int i = 0; i < problem_.iterations; ++i) {
            cycle();
            norm = descend_from_finest();
        }
        in_mpi([&] { MPI_Allreduce(&norm, &norm_, 1, MPI_DOUBLE, MPI_SUM, launch_.comm); });
        norm_ = std::sqrt(norm_ / std::pow(problem_.n, 3));
    }

    std::string wrong() const { return differs("the norm", norm_, problem_.norm, 1e-8); }
    std::size_t checked() const { return 1; }
    void corrupt() { norm_ += 1; }

private:
    struct Problem {
        long n;
        int iterations;
        Weights smoother;
        double norm;  // official: NPB 3.3, mg.f
    };
    static constexpr Problem problem(char size) {
        constexpr Weights a{-3. / 8, 1. / 32, -1. / 64, 0}, b{-3. / 17, 1. / 33, -1. / 61, 0};
        switch (size) {
            case 'S':
                return {32, 4, a, 0.5307707005734e-4};
            case 'W':
                return {128, 4, a, 0.6467329375339e-5};
            case 'A':
                return {256, 4, a, 0.2433365309069e-5};
            case 'B':
                return {256, 20, b, 0.1800564401355e-5};
            case 'C':
                return {512, 20, b, 0.5706732285740e-6};
            default:
                return {1024, 50, b, 0.1583275060440e-9};
        }
    }
    static constexpr long most_whole = 16;  // points along an axis

    static std::size_t size(long n) { return static_cast<std::size_t>(n); }

    static Axes grid(long ranks) {
        Axes processes{1, 1, 1};
        for (std::size_t axis = 2; ranks > 1; ranks /= 2, axis = (axis + 2) % 3)
            processes[axis] *= 2;
        return processes;
    }
    Axes place(long rank) const {
        return {rank % grid_[0], rank / grid_[0] % grid_[1], rank / (grid_[0] * grid_[1])};
    }
    bool alone(const Level& level, std::size_t axis) const {
        return level.whole || grid_[axis] == 1;
    }
    int neighbour(std::size_t axis, long step) const {
        Axes p = place_;
        p[axis] = (p[axis] + step + grid_[axis]) % grid_[axis];
        return static_cast<int>(p[0] + grid_[0] * (p[1] + grid_[1] * p[2]));
    }

    // Rows that are worked on together, so that what is taken from one plane for the next ones is
    // still in the cache: 4 planes of u, 3 of its residual, and the right-hand side.
    static long tile(const Level& level) {
        return std::min(level.n[1] + 4, std::max(8L, cached / (9 * 8 * level.row)));
    }
    static constexpr long cached = 1 << 19;  // bytes

    // The equation's right-hand side: 1 where the ten largest of n^3 random numbers are, -1 where
    // the ten least are.
    struct Drawn {
        double value;
        long point;
    };
    using Ten = std::array<Drawn, 10>;  // in order, the largest at the end
    static void offer(Ten& ten, const Drawn& drawn) {
        if (drawn.value <= ten[0].value) return;
        ten[0] = drawn;
        for (std::size_t i = 1; i < ten.size() && ten[i - 1].value > ten[i].value; ++i)
            std::swap(ten[i - 1], ten[i]);
    }
    void charge() {
        Level& level = levels_[0];
        std::array<Ten, 2> mine;  // of the numbers, and of what they lack to 1
        for (Ten& ten : mine) ten.fill({0, -1});
        for (long z = 0; z < level.n[2]; ++z)
            for (long y = 0; y < level.n[1]; ++y) {
                const long n = problem_.n;
                long point = ((place_[2] * level.n[2] + z) * n + place_[1] * level.n[1] + y) * n +
                             place_[0] * level.n[0];
                Random random{314159265};
                random.skip(static_cast<std::uint64_t>(point));
                for (long x = 0; x < level.n[0]; ++x, ++point) {
                    const double value = random.next();
                    offer(mine[0], {value, point});
                    offer(mine[1], {1 - value, point});
                }
            }
        std::vector<std::array<Ten, 2>> all(size(launch_.ranks));
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                      launch_.comm);
        for (std::size_t sign = 0; sign < 2; ++sign) {
            Ten best;
            best.fill({0, -1});
            for (const auto& theirs : all)
                for (const Drawn& drawn : theirs[sign]) offer(best, drawn);
            for (const Drawn& drawn : best) put(level, drawn.point, sign == 0 ? 1 : -1);
        }
        exchange(level, level.r, 1);
    }
    void put(Level& level, long point, double value) const {
        Axes at{point % problem_.n, point / problem_.n % problem_.n,
                point / (problem_.n * problem_.n)};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            at[axis] -= place_[axis] * level.n[axis];
            if (at[axis] < 0 || at[axis] >= level.n[axis]) return;
        }
        level.r[size(level.at(at[0] + 1, at[1] + 1, at[2] + 1))] = value;
    }

    void cycle() {
        for (std::size_t l = 1; l + 1 < levels_.size(); ++l) descend(l);
        Level& coarsest = levels_.back();
        std::fill(coarsest.u.begin(), coarsest.u.end(), 0.0);
        for (long z = 1; z <= coarsest.n[2]; ++z) {
            const double* const r = coarsest.r.data() + coarsest.at(0, 1, z);
            stencil::smooth(coarsest.u.data() + coarsest.at(0, 1, z), coarsest.row,
                            r - coarsest.plane, r, r + coarsest.plane, coarsest.row, coarsest.n[1],
                            coarsest.n[0], problem_.smoother);
        }
        exchange(coarsest, coarsest.u, 2);
        for (std::size_t l = levels_.size() - 1; l-- > 0;) ascend(l);
    }

    // Where a level's residual is made: in its place, or in a part to be gathered.
    struct Target {
        double* first;  // of x, y, z = 0
        long row, plane;
    };
    Target target(std::size_t l) {
        Level& to = levels_[l];
        if (!gathered(l)) return {to.r.data() + to.at(0, 0, 0), to.row, to.plane};
        const Axes& n = levels_[l - 1].n;
        const long row = n[0] / 2, plane = row * (n[1] / 2);
        return {part_.data() - row - plane, row, plane};
    }
    bool gathered(std::size_t l) const { return levels_[l].whole && !levels_[l - 1].whole; }

    // Completes the residual of a level with what other processes have of it.
    void complete(std::size_t l) {
        Level& level = levels_[l];
        if (gathered(l)) {
            const int count = static_cast<int>(part_.size() - 1);
            in_mpi([&] {
                MPI_Allgather(part_.data() + 1, count, MPI_DOUBLE, parts_.data(), count, MPI_DOUBLE,
                              launch_.comm);
            });
            const double* from = parts_.data();
            for (long rank = 0; rank < launch_.ranks; ++rank) from = put_part(level, rank, from);
        }
        exchange(level, level.r, 1);
    }
    const double* put_part(Level& level, long rank, const double* from) const {
        const Axes p = place(rank);
        const Axes n{level.n[0] / grid_[0], level.n[1] / grid_[1], level.n[2] / grid_[2]};
        for (long z = 1; z <= n[2]; ++z)
            for (long y = 1; y <= n[1]; ++y, from += n[0])
                std::copy_n(
                    from, n[0],
                    level.r.begin() + level.at(p[0] * n[0] + 1, p[1] * n[1] + y, p[2] * n[2] + z));
        return from;
    }

    // Takes the residual of level `l` to the next coarser one.
    void descend(std::size_t l) {
        const Level& from = levels_[l];
        const Target to = target(l + 1);
        for (long z = 1; z <= from.n[2] / 2; ++z) {
            const double* const r = from.r.data() + from.at(0, 2, 2 * z);
            stencil::coarsen(to.first + z * to.plane + to.row, to.row, r - from.plane, r,
                             r + from.plane, from.row, from.n[1] / 2, from.n[0] / 2);
        }
        complete(l + 1);
    }

    double* ring(const Level& level, long z) {
        return ring_.data() + z % 3 * (tile(level) + 2) * level.row + Level::first - 1;
    }

    // The same for the finest level, where the residual is new: a few rows of three planes are all
    // that is needed of it at once. Returns the sum of its squares.
    double descend_from_finest() {
        const Level& from = levels_[0];
        const Target to = target(1);
        double sum = 0;
        const long step = tile(from) / 2, half = from.n[1] / 2;
        for (long first = 1; first <= half; first += step) {
            const long rows = std::min(step, half + 1 - first), y = 2 * first - 1;
            for (long z = 1; z <= from.n[2] + 1; ++z) {
                double* const r = ring(from, z);
                stencil::residual(r, from.row, from.r.data() + from.at(0, y, z),
                                  from.u.data() + from.at(0, y, z), from.row, from.plane,
                                  2 * rows + 1, from.n[0]);
                if (z <= from.n[2])
                    for (long k = 0; k < 2 * rows; ++k)
                        sum += stencil::squares(r + k * from.row, from.n[0]);
                if (z % 2 == 0 || z == 1) continue;
                stencil::coarsen(to.first + z / 2 * to.plane + first * to.row, to.row,
                                 ring(from, z - 2) + from.row, ring(from, z - 1) + from.row,
                                 r + from.row, from.row, rows, from.n[0] / 2);
            }
        }
        complete(1);
        return sum;
    }

    // Corrects level `l` by the next coarser one, and smooths what is left: u = u + Q c, r = v - A
    // u, u = u + S r, where u is 0 before but at the finest level. Three sweeps in one: a plane is
    // smoothed when the residual of the next one is known, and that when the second next one is
    // corrected; likewise for rows, where a tile ends, the last two rows of residuals are kept.
    void ascend(std::size_t l) {
        Level& fine = levels_[l];
        const Level& coarse = levels_[l + 1];
        Axes origin{0, 0, 0};
        if (coarse.whole && !fine.whole)
            for (std::size_t axis = 0; axis < 3; ++axis)
                origin[axis] = place_[axis] * fine.n[axis] / 2;
        const double* const c = coarse.u.data() + coarse.at(origin[0], origin[1], origin[2]);
        const long end = fine.n[1] + 3, step = tile(fine), row = fine.row;
        for (long first = -1; first < end; first += step) {
            const long last = std::min(first + step, end);
            for (long z = -1; z <= fine.n[2] + 2; ++z) {
                const double* const lower = c + (z - (z & 1)) / 2 * coarse.plane;
                stencil::interpolate(fine.u.data() + fine.at(0, first, z), row, l == 0, lower,
                                     lower + (z & 1) * coarse.plane, coarse.row, first, last,
                                     fine.n[0] / 2);
                if (z >= 1) leave_residual(fine, first, last, z - 1);
                if (z >= 3) smooth(fine, first, last, z - 2);
            }
        }
        exchange(fine, fine.u, 2, alone(fine, 0) ? 1 : 0);
    }

    // The residual of rows first - 1 to last - 2, in the ring behind the two rows before them.
    void leave_residual(const Level& level, long first, long last, long z) {
        const long row = level.row, y = std::max(first - 1, 0L),
                   end = std::min(last - 1, level.n[1] + 2);
        double* const r = ring(level, z);
        double* const kept = border_.data() + 2 * z * row;
        if (first > -1) std::copy_n(kept, 2 * row, r - Level::first + 1);
        stencil::residual(r + (y - first + 3) * row, row, level.r.data() + level.at(0, y, z),
                          level.u.data() + level.at(0, y, z), row, level.plane, end - y,
                          level.n[0]);
        std::copy_n(r + (last - first) * row - Level::first + 1, 2 * row, kept);
    }

    // Smooths rows first - 2 to last - 3, of which no residual is needed any more.
    void smooth(Level& level, long first, long last, long z) {
        const long row = level.row, n = level.n[0], y = std::max(first - 2, 1L),
                   end = std::min(last - 2, level.n[1] + 1), skipped = (y - first + 3) * row;
        double* u = level.u.data() + level.at(0, y, z);
        stencil::smooth(u, row, ring(level, z - 1) + skipped, ring(level, z) + skipped,
                        ring(level, z + 1) + skipped, row, end - y, n, problem_.smoother);
        if (!alone(level, 0)) return;
        for (long k = y; k < end; ++k, u += row) {
            u[-1] = u[n - 1];
            u[0] = u[n];
            u[n + 1] = u[1];
            u[n + 2] = u[2];
        }
    }

    struct Box {
        Axes from, to;  // `to` excluded
    };
    static long pack(const Level& level, const Reals& field, const Box& box, double* out) {
        const double* const begin = out;
        for (long z = box.from[2]; z < box.to[2]; ++z)
            for (long y = box.from[1]; y < box.to[1]; ++y)
                out = std::copy_n(field.begin() + level.at(box.from[0], y, z),
                                  box.to[0] - box.from[0], out);
        return out - begin;
    }
    static void unpack(const Level& level, Reals& field, const Box& box, const double* in) {
        const long n = box.to[0] - box.from[0];
        for (long z = box.from[2]; z < box.to[2]; ++z)
            for (long y = box.from[1]; y < box.to[1]; ++y, in += n)
                std::copy_n(in, n, field.begin() + level.at(box.from[0], y, z));
    }

    // Fills the copies of `width` neighbours' points at each end, axis by axis, those of the axes
    // before included.
    void exchange(const Level& level, Reals& field, long width, std::size_t axis = 0) {
        for (; axis < 3; ++axis) {
            Box box{{1, 1, 1}, {level.n[0] + 1, level.n[1] + 1, level.n[2] + 1}};
            for (std::size_t before = 0; before < axis; ++before) {
                box.from[before] -= width;
                box.to[before] += width;
            }
            const long n = level.n[axis];
            const auto slice = [&](long first) {
                Box one = box;
                one.from[axis] = first;
                one.to[axis] = first + width;
                return one;
            };
            const int count = static_cast<int>(pack(level, field, slice(1), out_[0].data()));
            pack(level, field, slice(n + 1 - width), out_[1].data());
            const bool here = alone(level, axis);
            if (!here) swap_sides(axis, count);
            unpack(level, field, slice(1 - width), (here ? out_[1] : in_[0]).data());
            unpack(level, field, slice(n + 1), (here ? out_[0] : in_[1]).data());
        }
    }

    // Sends out_[0] down the axis and out_[1] up, and receives the neighbours' likewise.
    void swap_sides(std::size_t axis, int count) {
        const int down = neighbour(axis, -1), up = neighbour(axis, 1);
        in_mpi([&] {
            std::array<MPI_Request, 4> requests;
            MPI_Irecv(in_[0].data(), count, MPI_DOUBLE, down, 1, launch_.comm, &requests[0]);
            MPI_Irecv(in_[1].data(), count, MPI_DOUBLE, up, 2, launch_.comm, &requests[1]);
            MPI_Isend(out_[1].data(), count, MPI_DOUBLE, up, 1, launch_.comm, &requests[2]);
            MPI_Isend(out_[0].data(), count, MPI_DOUBLE, down, 2, launch_.comm, &requests[3]);
            MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
        });
    }

    const Launch launch_;
    const Problem problem_;
    const Axes grid_, place_;    // processes along each axis, and where this one is
    std::vector<Level> levels_;  // the finest first
    std::vector<double> part_, parts_;
    Reals ring_, border_;
    std::vector<double> out_[2], in_[2];
    double norm_ = 0;
};

}  // namespace paribus::npb
