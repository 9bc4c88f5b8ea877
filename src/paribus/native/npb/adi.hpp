// What SP and BT have in common: both march the equations of euler.hpp in time, and split the
// implicit side into a factor for each axis, whose lines of points are solved one axis after the
// other (NPB report RNR-94-007, section 3, and NPB 3.3).
#pragma once

#include "cells.hpp"
#include "euler.hpp"

namespace paribus::npb::adi {

struct Marching {
    int points, steps;
    double dt;
    State residual, error;  // official norms
};

// A part of lines along an axis. Position 0 is the cell's first point.
struct Span {
    int axis, points, low;  // points of the cube along the axis; where position 0 is among them
    int begin, end;         // positions that are solved
};

// Lines of a cell that are computed at once.
struct Lines : Span {
    int first, last;  // lanes whose lines are solved; others have what does no harm
    int i, j, k;      // of the first lane's position 0
    // At position 0: the state, whose momentum along the axis comes first of the three; the
    // right-hand side, that becomes the solution; what eliminating forward leaves for backward.
    Lanes *u, *x, *upper;
};

// The time step times the weights of first, second and fourth differences.
struct Weights {
    double first, second, fourth;
};

// Which number of a point is which of a line: momentum along an axis comes first of the three.
constexpr int turned[3][5] = {{0, 1, 2, 3, 4}, {0, 2, 1, 3, 4}, {0, 3, 2, 1, 4}};

// Takes eight positions of lines along x from rows, which are `apart` and have points side by side.
// A lane without a row repeats the last one.
PARIBUS_VECTORS static void transpose(const Lanes* from, long apart, int rows, Lanes* to) {
    long row[lanes];
    for (int l = 0; l < lanes; ++l) row[l] = std::min(l, rows - 1) * apart;
    for (int m = 0; m < 5; ++m)
        for (int p = 0; p < lanes; ++p)
            for (int l = 0; l < lanes; ++l) to[5 * p + m][l] = from[row[l] + m][p];
}

PARIBUS_VECTORS static void transpose_back(const Lanes* from, Lanes* to, long apart, int rows) {
    for (int l = 0; l < rows; ++l)
        for (int m = 0; m < 5; ++m)
            for (int p = 0; p < lanes; ++p) to[l * apart + m][p] = from[5 * p + m][l];
}

// Takes what positions from `from` to `to` have in a field, or all positions if along x.
inline void load(const Lines& lines, const Cell& cell, const std::vector<Lanes>& field,
                 const int (&order)[5], int from, int to, Lanes* rows) {
    const Lanes* const here = &field[cell.at(lines.i, lines.j, lines.k)];
    if (lines.axis == 0) {
        for (int p = 0; p < cell.size[0]; p += lanes)
            transpose(here + 5 * (p / lanes), cell.step[1], lines.last, rows + 5 * p);
        return;
    }
    const long along = cell.step[static_cast<std::size_t>(lines.axis)];
    for (int p = from; p < to; ++p)
        for (int m = 0; m < 5; ++m) {
            // The next lines', which the processor does not foresee.
            __builtin_prefetch(here + p * along + 5 + m, 0, 2);
            rows[5 * p + m] = here[p * along + order[m]];
        }
}

inline void save(const Lines& lines, const Cell& cell, const Lanes* rows, const int (&order)[5],
                 std::vector<Lanes>& field) {
    Lanes* const here = &field[cell.at(lines.i, lines.j, lines.k)];
    if (lines.axis == 0) {
        for (int p = 0; p < cell.size[0]; p += lanes)
            transpose_back(rows + 5 * p, here + 5 * (p / lanes), cell.step[1], lines.last);
        return;
    }
    const long along = cell.step[static_cast<std::size_t>(lines.axis)];
    for (int p = lines.begin; p < lines.end; ++p)
        for (int m = 0; m < 5; ++m) here[p * along + order[m]] = rows[5 * p + m];
}

// Takes the states of two positions beyond each end of lines along x.
inline void load_beyond(const Lines& lines, const Cell& cell) {
    for (int l = 0; l < lanes; ++l) {
        const int row = lines.k * cell.size[1] + lines.j + std::min(l, lines.last - 1);
        for (int m = 0; m < 10; ++m) {
            if (cell.beyond[0]) lines.u[m - 10][l] = cell.beyond[0][10 * row + m];
            if (cell.beyond[1]) lines.u[5 * cell.size[0] + m][l] = cell.beyond[1][10 * row + m];
        }
    }
}

// Moves lines that are solved to or from a message; returns the message's rest.
inline double* pack(const Lines& lines, const Lanes* rows, int count, double* message) {
    for (const Lanes* row = rows; row < rows + count; ++row)
        message = std::copy(row->at + lines.first, row->at + lines.last, message);
    return message;
}

// Without a message the rows are zero, for nothing changes on the cube's faces.
inline const double* unpack(const Lines& lines, Lanes* rows, int count, const double* message) {
    for (Lanes* row = rows; row < rows + count; ++row) {
        *row = {};
        if (!message) continue;
        std::copy_n(message, lines.last - lines.first, row->at + lines.first);
        message += lines.last - lines.first;
    }
    return message;
}

// Adds differences along an axis to the right-hand sides from position `begin` on. States are those
// of position 0, and so far `apart`.
template <std::size_t axis>
PARIBUS_VECTORS static void add_differences(const Span& span, const Weights& weights,
                                            const Lanes* states, long apart, Lanes* x) {
    Lanes room[3][10];  // of three positions in turn
    for (int p = span.begin - 1; p <= span.end; ++p) {
        Lanes* const after = room[(p + 3) % 3];
        const Lanes* const state = states + p * apart;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            Fluxes<double> f;
            fluxes<axis>(State{state[0][l], state[1][l], state[2][l], state[3][l], state[4][l]}, f);
            PARIBUS_UNROLL
            for (std::size_t m = 0; m < 5; ++m) {
                after[m][l] = f.flow[m];
                after[5 + m][l] = f.diffusion[m];
            }
        }
        if (p <= span.begin) continue;
        const Lanes* const before = room[(p + 1) % 3];
        const Lanes* const here = room[(p + 2) % 3];
        const std::array<double, 5> fourth = fourth_weights(span.low + p - 1, span.points);
        for (int m = 0; m < 5; ++m) {
            const Lanes* const u = state - apart + m;
            PARIBUS_INDEPENDENT
            for (int l = 0; l < lanes; ++l)
                x[m][l] +=
                    weights.second * (before[5 + m][l] - 2 * here[5 + m][l] + after[5 + m][l]) -
                    weights.first * (after[m][l] - before[m][l]) -
                    weights.fourth * (fourth[0] * u[-2 * apart][l] + fourth[1] * u[-apart][l] +
                                      fourth[2] * u[0][l] + fourth[3] * u[apart][l] +
                                      fourth[4] * u[2 * apart][l]);
        }
        x += 5;
    }
}

// A scheme solves the lines. It is made from Weights, and has
//   static constexpr Kind kind             name and summary
//   static constexpr Marching problem(char size)
//   static double operations(double n)     that the official figure counts for a step
//   static constexpr int reach             how many positions an equation couples, each way
//   static constexpr int uppers            numbers at a position that eliminating forward leaves
//   static constexpr bool turns            whether x's order turns with the axis, as u's does
//   void see(lines)                        before the others: the states are there
//   void forward(lines), backward(lines)   start from what is at the positions before begin, and
//                                          from end on
//   void leave(lines)                      after backward; after the last axis x is the change of u
template <class Scheme>
class Adi {
public:
    static constexpr Kind kind = Scheme::kind;
    InMpi in_mpi;

    explicit Adi(const Launch& l)
        : launch_(l),
          problem_(Scheme::problem(l.size)),
          weights_(weights(problem_)),
          exact_(problem_.points),
          cells_(l, problem_.points),
          scheme_(weights_) {
        const int size = (problem_.points + cells_.side - 1) / cells_.side;
        const int strips = size * ((size + lanes - 1) / lanes);
        u_.resize(to_size(5 * (size + lanes + 4)));
        x_.resize(u_.size());
        rows_.resize(u_.size());
        upper_.resize(to_size((size + reach) * uppers));
        kept_.resize(to_size(cells_.side - 1));
        for (auto& kept : kept_) kept.resize(to_size(strips) * upper_.size());
        for (auto* const message : {&in_, &out_})
            if (cells_.side > 1) message->resize(to_size(size * size * reach * (5 + uppers)));
        for (Cell& cell : cells_.all)
            cell.points(true, [&](int i, int j, int k) {
                const State f = exact_.forcing(cell.low[0] + i, cell.low[1] + j, cell.low[2] + k);
                for (std::size_t m = 0; m < 5; ++m)
                    cell.forcing[cell.at(i, j, k) + m][i % lanes] = problem_.dt * f[m];
            });
    }

    // Three fields with the neighbours' points, what eliminating leaves, and messages.
    static double bytes(const Launch& l) {
        const double side = std::ceil(std::sqrt(l.ranks));
        const double size = std::ceil(Scheme::problem(l.size).points / side);
        const double strips = size * std::ceil(size / lanes);
        const double fields = 15 * lanes * std::ceil(size / lanes) * (size + 4) * (size + 4) * side;
        const double kept = (side - 1) * strips * lanes * (size + reach) * uppers;
        const double sent = (side - 1) * size * size * (2 * reach * (5 + uppers) + 120);
        return 8 * (fields + kept + sent);
    }
    static long least_ranks(char) { return 1; }
    static long most_ranks(char size) {
        const long side = Scheme::problem(size).points / 3;  // a cell has at least 3 points
        return side * side;
    }
    double operations() const { return problem_.steps * Scheme::operations(problem_.points); }

    void prepare() {
        for (Cell& cell : cells_.all)
            cell.points(false, [&](int i, int j, int k) {
                const State u = exact_.initial(cell.low[0] + i, cell.low[1] + j, cell.low[2] + k);
                for (std::size_t m = 0; m < 5; ++m) cell.u[cell.at(i, j, k) + m][i % lanes] = u[m];
            });
    }

    void run() {
        for (int step = 0; step < problem_.steps; ++step) {
            cells_.exchange(in_mpi);
            for (int axis = 0; axis < 3; ++axis) sweep(axis);
        }
        await_sent();
    }

    std::string wrong() {
        const InMpi counted = in_mpi;  // what follows is not timed
        State residual{}, error{};
        for (const Cell& cell : cells_.all)
            cell.points(false, [&](int i, int j, int k) {
                const State u = exact_.at(cell.low[0] + i, cell.low[1] + j, cell.low[2] + k);
                for (std::size_t m = 0; m < 5; ++m)
                    add_square(error[m], cell.u[cell.at(i, j, k) + m][i % lanes] - u[m]);
            });
        cells_.exchange(in_mpi);
        for (Cell& cell : cells_.all) {
            strips(cell, 0, cells_.side - 1, [&](const Lines& l) {
                begin_lines(cell, l);
                save(l, cell, l.x, turned[0], cell.rhs);
            });
            cell.points(true, [&](int i, int j, int k) {
                for (std::size_t m = 0; m < 5; ++m)
                    add_square(residual[m],
                               cell.rhs[cell.at(i, j, k) + m][i % lanes] / problem_.dt);
            });
        }
        in_mpi = counted;
        return both(differ("residual", residual, problem_.residual),
                    differ("error", error, problem_.error));
    }
    std::size_t checked() const { return 10; }
    void corrupt() {
        Cell& cell = cells_.all.back();
        cell.u[cell.at(1, 1, 1) + 4][1] += 1;
    }

private:
    static constexpr int reach = Scheme::reach, uppers = Scheme::uppers;

    static std::size_t to_size(int n) { return static_cast<std::size_t>(n); }

    static Weights weights(const Marching& problem) {
        const double n = problem.points - 1, dt = problem.dt;
        return {.5 * n * dt, n * n * dt, fourth_damping * dt};
    }

    static void add_square(double& sum, double value) { sum += value * value; }

    std::string differ(const char* what, State sums, const State& official) const {
        MPI_Allreduce(MPI_IN_PLACE, sums.data(), 5, MPI_DOUBLE, MPI_SUM, launch_.comm);
        return norms_differ(what, norms(sums, problem_.points), official);
    }

    static const int (&order(int axis))[5] { return turned[Scheme::turns ? axis : 0]; }

    // Calls `each` with the lines of the cell at a place along an axis. What eliminating leaves is
    // kept for each of them, but in the last cell only until they are solved.
    template <class Each>
    void strips(Cell& cell, std::size_t axis, int place, Each each) {
        const std::size_t side = axis == 0 ? 1 : 0, other = axis == 2 ? 1 : 2;
        const bool last = place == cells_.side - 1;
        Lines l{};
        l.axis = static_cast<int>(axis);
        l.points = problem_.points;
        l.low = cell.low[axis];
        l.begin = cell.begin[axis];
        l.end = cell.end[axis];
        l.u = &u_[10];
        l.x = &x_[10];
        l.upper = (last ? upper_.data() : kept_[to_size(place)].data()) + reach * uppers;
        for (int o = cell.begin[other]; o < cell.end[other]; ++o)
            for (int s = axis == 0 ? cell.begin[1] : 0; s < cell.end[side]; s += lanes) {
                l.first = std::max(0, cell.begin[side] - s);
                l.last = std::min(lanes, cell.end[side] - s);
                l.i = axis == 0 ? 0 : s;
                l.j = axis == 0 ? s : axis == 1 ? 0 : o;
                l.k = axis == 2 ? 0 : o;
                each(l);
                if (!last) l.upper += upper_.size();
            }
    }

    // Takes the states of lines along x and makes their right-hand sides.
    void begin_lines(const Cell& cell, const Lines& l) {
        load(l, cell, cell.u, turned[0], 0, 0, l.u);
        load_beyond(l, cell);
        const Span along_y{1, problem_.points, cell.low[1], l.j, l.j + l.last};
        const Span along_z{2, problem_.points, cell.low[2], l.k, l.k + 1};
        for (int r = 0; r < l.last; ++r)
            for (int i = 0; i < cell.size[0]; i += lanes) {
                Lanes* const row = &rows_[to_size(5 * (i + r))];
                std::copy_n(&cell.forcing[cell.at(i, l.j + r, l.k)], 5, row);
                add_differences<2>(along_z, weights_, &cell.u[cell.at(i, l.j + r, 0)], cell.step[2],
                                   row);
            }
        for (int i = 0; i < cell.size[0]; i += lanes) {
            Lanes* const row = &rows_[to_size(5 * i)];
            add_differences<1>(along_y, weights_, &cell.u[cell.at(i, 0, l.k)], cell.step[1], row);
            transpose(row, 5, l.last, l.x + 5 * i);
        }
        add_differences<0>(l, weights_, l.u, 5, l.x + 5 * l.begin);
    }

    const double* receive(int axis, bool forward) {
        in_mpi([&] {
            MPI_Recv(in_.data(), static_cast<int>(in_.size()), MPI_DOUBLE,
                     cells_.neighbour(to_size(axis), !forward), tag(axis, forward), launch_.comm,
                     MPI_STATUS_IGNORE);
        });
        return in_.data();
    }

    void await_sent() {
        in_mpi([&] { MPI_Wait(&sent_, MPI_STATUS_IGNORE); });
    }

    // Where the next message begins.
    double* begin_message() {
        await_sent();
        return out_.data();
    }

    void send(int axis, bool forward, const double* end) {
        in_mpi([&] {
            MPI_Isend(out_.data(), static_cast<int>(end - out_.data()), MPI_DOUBLE,
                      cells_.neighbour(to_size(axis), forward), tag(axis, forward), launch_.comm,
                      &sent_);
        });
    }

    // The exchange has the tags below.
    static int tag(int axis, bool forward) { return 6 + 2 * axis + (forward ? 1 : 0); }

    // Solves the lines along an axis: eliminates forward from cell to cell, and then substitutes
    // backward, which in the last cell follows at once, while the lines are in the cache.
    void sweep(int axis) {
        const int last = cells_.side - 1;
        for (int place = 0; place <= last; ++place) {
            Cell& cell = cells_.placed(to_size(axis), place);
            const double* in = place > 0 ? receive(axis, true) : nullptr;
            const double* none = nullptr;
            double* out = begin_message();
            strips(cell, to_size(axis), place, [&](const Lines& l) {
                if (axis == 0) {
                    begin_lines(cell, l);
                } else {
                    load(l, cell, cell.u, turned[axis], l.begin - 1, l.end + 1, l.u);
                    load(l, cell, cell.rhs, order(axis), l.begin, l.end, l.x);
                }
                scheme_.see(l);
                in = unpack(l, l.x + 5 * (l.begin - reach), 5 * reach, in);
                in = unpack(l, l.upper + uppers * (l.begin - reach), uppers * reach, in);
                scheme_.forward(l);
                if (place == last) return substitute(cell, l, none, out);
                save(l, cell, l.x, order(axis), cell.rhs);
                out = pack(l, l.x + 5 * (l.end - reach), 5 * reach, out);
                out = pack(l, l.upper + uppers * (l.end - reach), uppers * reach, out);
            });
            if (last > 0) send(axis, place < last, out);
        }
        for (int place = last - 1; place >= 0; --place) {
            Cell& cell = cells_.placed(to_size(axis), place);
            const double* in = receive(axis, false);
            double* out = begin_message();
            strips(cell, to_size(axis), place, [&](const Lines& l) {
                if (axis == 2) {
                    load(l, cell, cell.u, turned[axis], l.begin - 1, l.end + 1, l.u);
                    scheme_.see(l);
                }
                load(l, cell, cell.rhs, order(axis), l.begin, l.end, l.x);
                substitute(cell, l, in, out);
            });
            if (place > 0) send(axis, false, out);
        }
    }

    void substitute(Cell& cell, const Lines& l, const double*& in, double*& out) {
        in = unpack(l, l.x + 5 * l.end, 5 * reach, in);
        scheme_.backward(l);
        if (!cell.at_start(to_size(l.axis))) out = pack(l, l.x + 5 * l.begin, 5 * reach, out);
        scheme_.leave(l);
        if (l.axis < 2) return save(l, cell, l.x, order(l.axis), cell.rhs);
        for (int row = 5 * l.begin; row < 5 * l.end; ++row)
            for (int a = l.first; a < l.last; ++a) l.u[row][a] += l.x[row][a];
        save(l, cell, l.u, turned[l.axis], cell.u);
    }

    const Launch launch_;
    const Marching problem_;
    const Weights weights_;
    const Exact exact_;
    Cells cells_;
    Scheme scheme_;
    MPI_Request sent_ = MPI_REQUEST_NULL;
    std::vector<Lanes> u_, x_, upper_, rows_;
    std::vector<std::vector<Lanes>> kept_;  // of the cells along an axis, but the last
    std::vector<double> in_, out_;
};

}  // namespace paribus::npb::adi
