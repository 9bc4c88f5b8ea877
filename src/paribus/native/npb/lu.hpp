// LU, symmetric successive over-relaxation: time steps of the equations of euler.hpp, each with one
// sweep along x, y and z and one back, that solve the lower and the upper half of the linear system
// (NPB report RNR-94-007, section 3.4.4, and NPB 3.3: ssor.f, jacld.f, blts.f, rhs.f, pintgr.f).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "euler.hpp"
#include "quad.hpp"

namespace paribus::npb {

// The states of a block's inner points and of `edge` points around them. Where nothing else is said
// points count from the first inner one. A row has each of the five values of its points in turn.
struct LuField {
    LuField(long nx, long ny, long nz, long edge_points, double value)
        : edge(edge_points),
          width(whole_quads(nx) + (edge > 0 ? quad : 0)),
          row(5 * width),
          plane((ny + 2 * edge) * row),
          values(static_cast<std::size_t>((nz + 2 * edge) * plane), value) {}
    const double* at(long j, long k) const {
        return values.data() + (k + edge) * plane + (j + edge) * row + edge;
    }
    double* at(long j, long k) { return const_cast<double*>(std::as_const(*this).at(j, k)); }

    long edge, width, row, plane;
    std::vector<double> values;
};

template <class Real>
PARIBUS_WITHIN void load(Five<Real>& to, const double* from, long width) {
    for (std::size_t m = 0; m < 5; ++m) load(to[m], from + static_cast<long>(m) * width);
}

template <class Real>
PARIBUS_WITHIN void store(double* to, const Five<Real>& from, long width) {
    for (std::size_t m = 0; m < 5; ++m) store(to + static_cast<long>(m) * width, from[m]);
}

// What a sweep multiplies with, all times the time step.
struct LuFactors {
    double flow, diffusion;  // of a neighbour's block, times the relaxation
    double diagonal;         // 2 / h^2
};

// What the block of the Jacobian needs of a point.
template <class Real>
struct LuPoint {
    Real volume, v[3], energy, kinetic;  // the last two per mass

    PARIBUS_WITHIN explicit LuPoint(const Five<Real>& u)
        : volume(1. / u[0]),
          v{volume * u[1], volume * u[2], volume * u[3]},
          energy(volume * u[4]),
          kinetic(.5 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])) {}
};

// Subtracts from `sum` the block of a neighbour along `axis`, towards 0 (way -1) or from it (1),
// times its values x: the derivative of its fluxes in the direction of x, without a matrix.
template <std::size_t axis, int way, class Real>
PARIBUS_WITHIN void subtract_neighbour(Five<Real>& sum, const LuPoint<Real>& p, const Five<Real>& x,
                                       const LuFactors& factors) {
    const Real along = p.v[axis];
    Real slips[3];
    for (std::size_t d = 0; d < 3; ++d) slips[d] = x[1 + d] - p.v[d] * x[0];
    const Real pressure =
        k2 * ((p.kinetic * x[0] + x[4]) - (p.v[0] * x[1] + p.v[1] * x[2] + p.v[2] * x[3]));
    Five<Real> flow = {x[1 + axis], p.v[0] * slips[axis] + along * x[1],
                       p.v[1] * slips[axis] + along * x[2], p.v[2] * slips[axis] + along * x[3],
                       (k1 * p.energy - k2 * p.kinetic) * slips[axis] + along * (pressure + x[4])};
    flow[1 + axis] += pressure;
    Five<Real> diffusion;
    const Real thickness = shear * p.volume;
    diffusion[0] = second_damping[axis] * x[0];
    diffusion[4] = heat * thickness * (x[4] - p.energy * x[0]) + second_damping[axis] * x[4];
    for (std::size_t d = 0; d < 3; ++d) {
        const double weight = d == axis ? 4. / 3 : 1;
        const Real drag = thickness * slips[d];
        diffusion[1 + d] = weight * drag + second_damping[axis] * x[1 + d];
        diffusion[4] += (weight - heat) * p.v[d] * drag;
    }
    for (std::size_t m = 0; m < 5; ++m)
        sum[m] -= way * factors.flow * flow[m] - factors.diffusion * diffusion[m];
}

// Solves with the block of the diagonal, which is triangular.
PARIBUS_WITHIN void solve_diagonal(const LuPoint<double>& p, State& x, const LuFactors& factors) {
    const double base = 1 + 2.5 * factors.diagonal;
    const double thickness = factors.diagonal * shear * p.volume;
    const double drag = 10. / 3 * thickness, warm = 3 * heat * thickness;
    // No division waits for x.
    const double share = 1 / (base + drag), warm_share = 1 / (base + warm);
    x[0] *= 1 / base;
    double work = 0;
    for (std::size_t d = 0; d < 3; ++d) {
        x[1 + d] = (x[1 + d] + drag * p.v[d] * x[0]) * share;
        work += p.v[d] * (x[1 + d] - p.v[d] * x[0]);
    }
    x[4] = (x[4] + warm * p.energy * x[0] - (drag - warm) * work) * warm_share;
}

// What a rank has of the problem: some of the cube's inner points, nx times ny times nz from the
// one at x, y (all along z).
struct LuPart {
    LuPart(long all_points, double time_step, std::array<long, 2> first, std::array<long, 2> end)
        : points(all_points),
          x(first[0]),
          y(first[1]),
          nx(end[0] - x),
          ny(end[1] - y),
          nz(points - 2),
          step(time_step),
          u(nx, ny, nz, 2, 1.0),
          v(nx, ny, nz, 0, 0.0),
          forcing(nx, ny, nz, 0, 0.0),
          room(static_cast<std::size_t>(v.row)),
          zeros(room),
          beside_y(room),
          beside_x(static_cast<std::size_t>(5 * ny)),
          last_x(beside_x) {
        for (long i = 0; i < v.width; ++i)
            for (std::size_t m = 0; m < 5; ++m) weights_x[m].push_back(weights(x + i)[m]);
    }

    State weights(long at) const {
        return fourth_weights(static_cast<int>(at), static_cast<int>(points));
    }

    const long points, x, y, nx, ny, nz;
    const double step;
    LuField u, v, forcing;  // states; right-hand sides, then their changes; forcing
    Five<std::vector<double>> weights_x;
    std::vector<double> room, zeros;  // for a row
    // The changes at the points beside a plane that its sweep begins with, and at those along x
    // that it ends with.
    std::vector<double> beside_y, beside_x, last_x;
};

// Adds to `sum` what differences along `axis` make of the states at `u`, which are `apart`.
template <std::size_t axis, class Weight>
PARIBUS_WITHIN void add_differences(Five<Quad>& sum, const double* u, long apart, long width,
                                    double cells, const Five<Weight>& weights) {
    const double first = .5 * cells, second = cells * cells;
    for (int at = -2; at <= 2; ++at) {
        Five<Quad> state;
        load(state, u + at * apart, width);
        const Weight damping = -fourth_damping * weights[static_cast<std::size_t>(at + 2)];
        for (std::size_t m = 0; m < 5; ++m) sum[m] += damping * state[m];
        if (at == -2 || at == 2) continue;
        Fluxes<Quad> f;
        fluxes<axis>(state, f);
        for (std::size_t m = 0; m < 5; ++m)
            sum[m] += at == 0 ? -2 * second * f.diffusion[m]
                              : second * f.diffusion[m] - at * first * f.flow[m];
    }
}

// Leaves the right-hand sides in `v`.
PARIBUS_VECTORS
inline void lu_right_hand_side(LuPart& part) {
    const double cells = static_cast<double>(part.points - 1);
    const LuField& u = part.u;
    for (long k = 0; k < part.nz; ++k)
        for (long j = 0; j < part.ny; ++j) {
            const State weights_y = part.weights(part.y + j), weights_z = part.weights(1 + k);
            for (long i = 0; i < part.nx; i += quad) {
                Five<Quad> sum, weights_x;
                load(sum, part.forcing.at(j, k) + i, part.forcing.width);
                for (std::size_t m = 0; m < 5; ++m)
                    load(weights_x[m], part.weights_x[m].data() + i);
                const double* const here = u.at(j, k) + i;
                add_differences<0>(sum, here, 1, u.width, cells, weights_x);
                add_differences<1>(sum, here, u.row, u.width, cells, weights_y);
                add_differences<2>(sum, here, u.plane, u.width, cells, weights_z);
                store(part.v.at(j, k) + i, sum, part.v.width);
            }
        }
}

// Leaves in `room` what the neighbours of row j along y and z leave of its right-hand sides (way
// -1: in the sweep from 0) or take from its changes (1: in the one back).
template <int way>
PARIBUS_WITHIN void lu_across(LuPart& part, const LuFactors& factors, long j, long k) {
    const LuField &u = part.u, &v = part.v;
    const bool first_row = j == (way < 0 ? 0 : part.ny - 1);
    const bool first_plane = k == (way < 0 ? 0 : part.nz - 1);
    const double* const beside_y = first_row ? part.beside_y.data() : v.at(j + way, k);
    const double* const beside_z = first_plane ? part.zeros.data() : v.at(j, k + way);
    for (long i = 0; i < part.nx; i += quad) {
        Five<Quad> sum{}, state, x;
        if (way < 0) load(sum, v.at(j, k) + i, v.width);
        for (Quad& value : sum) value *= part.step;
        load(state, u.at(j, k + way) + i, u.width);
        load(x, beside_z + i, v.width);
        subtract_neighbour<2, way>(sum, LuPoint<Quad>(state), x, factors);
        load(state, u.at(j + way, k) + i, u.width);
        load(x, beside_y + i, v.width);
        subtract_neighbour<1, way>(sum, LuPoint<Quad>(state), x, factors);
        store(part.room.data() + i, sum, v.width);
    }
}

// One plane of a sweep. Along x each point waits for the one before.
template <int way>
PARIBUS_WITHIN void lu_sweep(LuPart& part, const LuFactors& factors, long k) {
    const LuField& u = part.u;
    const long width = part.v.width;
    for (long line = 0; line < part.ny; ++line) {
        const long j = way < 0 ? line : part.ny - 1 - line;
        lu_across<way>(part, factors, j, k);
        const double* const states = u.at(j, k);
        double* const changes = part.v.at(j, k);
        State state, change, sum;
        load(change, part.beside_x.data() + 5 * j, 1);
        load(state, states + (way < 0 ? -1 : part.nx), u.width);
        LuPoint<double> before(state);
        for (long n = 0; n < part.nx; ++n) {
            const long i = way < 0 ? n : part.nx - 1 - n;
            load(sum, part.room.data() + i, width);
            subtract_neighbour<0, way>(sum, before, change, factors);
            load(state, states + i, u.width);
            before = LuPoint<double>(state);
            solve_diagonal(before, sum, factors);
            if (way > 0) load(change, changes + i, width);
            for (std::size_t m = 0; m < 5; ++m) change[m] = sum[m] + (way > 0 ? change[m] : 0);
            store(changes + i, change, width);
        }
        store(part.last_x.data() + 5 * j, change, 1);
    }
}

PARIBUS_VECTORS
inline void lu_lower(LuPart& part, const LuFactors& factors, long k) {
    lu_sweep<-1>(part, factors, k);
}

PARIBUS_VECTORS
inline void lu_upper(LuPart& part, const LuFactors& factors, long k) {
    lu_sweep<1>(part, factors, k);
}

struct Lu {
    static constexpr Kind kind{"lu", "NPB LU: relaxation of a linear system along a wavefront.",
                               true};
    InMpi in_mpi;

    // The processes form a grid of as many rows as columns, or twice as many: columns divide the
    // inner points along x, rows along y.
    explicit Lu(const Launch& l)
        : launch_(l),
          problem_(problem(l.size)),
          exact_(problem_.points),
          columns_(columns_of(l.ranks)),
          rows_(l.ranks / columns_),
          column_(l.rank % columns_),
          row_(l.rank / columns_),
          part_(problem_.points, problem_.step, {cut(column_, columns_), cut(row_, rows_)},
                {cut(column_ + 1, columns_), cut(row_ + 1, rows_)}) {
        for (long k = 0; k < part_.nz; ++k)
            for (long j = 0; j < part_.ny; ++j)
                for (long i = 0; i < part_.nx; ++i)
                    store(part_.forcing.at(j, k) + i, here(&Exact::forcing, i, j, k),
                          part_.forcing.width);
        const LuField& u = part_.u;
        MPI_Type_vector(static_cast<int>(part_.nz), static_cast<int>(2 * u.row),
                        static_cast<int>(u.plane), MPI_DOUBLE, &two_rows_);
        MPI_Datatype plane;
        MPI_Type_vector(static_cast<int>(5 * part_.ny), 2, static_cast<int>(u.width), MPI_DOUBLE,
                        &plane);
        MPI_Type_create_hvector(static_cast<int>(part_.nz), 1,
                                static_cast<MPI_Aint>(sizeof(double)) * u.plane, plane,
                                &two_columns_);
        MPI_Type_commit(&two_rows_);
        MPI_Type_commit(&two_columns_);
        MPI_Type_free(&plane);
    }
    Lu(const Lu&) = delete;
    Lu& operator=(const Lu&) = delete;
    ~Lu() {
        MPI_Type_free(&two_rows_);
        MPI_Type_free(&two_columns_);
    }

    static double bytes(const Launch& l) {
        const double points = problem(l.size).points;
        const int columns = columns_of(l.ranks);
        const double nx = points / columns, ny = points / (l.ranks / columns);
        return 5 * sizeof(double) * points * ((nx + 8) * (ny + 4) + 2 * (nx + 4) * ny);
    }
    static long least_ranks(char) { return 1; }
    static long most_ranks(char size) {
        switch (size) {
            case 'S':
                return 16;
            case 'W':
                return 64;
            case 'A':
                return 256;
            case 'D':
                return 16384;
            default:
                return 1024;
        }
    }
    double operations() const {
        const double n = problem_.points;
        return problem_.steps * (1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010);
    }

    void prepare() {
        for (long k = -1; k <= part_.nz; ++k)
            for (long j = -2; j < part_.ny + 2; ++j)
                for (long i = -2; i < part_.nx + 2; ++i)
                    if (in_cube(part_.x + i) && in_cube(part_.y + j))
                        store(part_.u.at(j, k) + i, here(&Exact::initial, i, j, k), part_.u.width);
        lu_right_hand_side(part_);
    }

    void run() {
        for (int step = 1; step <= problem_.steps; ++step) {
            lower_sweep();
            upper_sweep();
            if (step == problem_.steps) changes_ = norms(all_squares(), problem_.points);
            exchange();
            lu_right_hand_side(part_);
        }
        residuals_ = norms(all_squares(), problem_.points);
    }

    std::string wrong() {
        const std::array<double, 6> sums = compare();
        State errors{};
        std::copy_n(sums.begin(), 5, errors.begin());
        errors = norms(errors, problem_.points);
        const std::string wrong = both(norms_differ("residual", residuals_, problem_.residuals),
                                       norms_differ("error", errors, problem_.errors));
        return both(wrong, differs("surface integral", sums[5], problem_.integral, 1e-8));
    }
    std::size_t checked() const { return 11; }
    void corrupt() { residuals_[4] += 1; }

private:
    struct Problem {
        int points, steps;
        double step;
        State residuals, errors;  // official, as the integral: NPB 3.3, verify.f
        double integral;
    };
    static constexpr Problem problem(char size) {
        switch (size) {
            case 'S':
                return {12,
                        50,
                        .5,
                        {1.6196343210976702e-2, 2.1976745164821318e-3, 1.5179927653399185e-3,
                         1.5029584435994323e-3, 3.4264073155896461e-2},
                        {6.4223319957960924e-4, 8.4144342047347926e-5, 5.8588269616485186e-5,
                         5.8474222595157350e-5, 1.3103347914111294e-3},
                        7.8418928865937083e+0};
            case 'W':
                return {33,
                        300,
                        1.5e-3,
                        {1.236511638192e+1, 1.317228477799e+0, 2.550120713095e+0, 2.326187750252e+0,
                         2.826799444189e+1},
                        {4.867877144216e-1, 5.064652880982e-2, 9.281818101960e-2, 8.570126542733e-2,
                         1.084277417792e+0},
                        1.161399311023e+1};
            case 'A':
                return {64,
                        250,
                        2,
                        {7.7902107606689367e+2, 6.3402765259692870e+1, 1.9499249727292479e+2,
                         1.7845301160418537e+2, 1.8384760349464247e+3},
                        {2.9964085685471943e+1, 2.8194576365003349e+0, 7.3473412698774742e+0,
                         6.7139225687777051e+0, 7.0715315688392578e+1},
                        2.6030925604886277e+1};
            case 'B':
                return {102,
                        250,
                        2,
                        {3.5532672969982736e+3, 2.6214750795310692e+2, 8.8333721850952190e+2,
                         7.7812774739425265e+2, 7.3087969592545314e+3},
                        {1.1401176380212709e+2, 8.1098963655421574e+0, 2.8480597317698308e+1,
                         2.5905394567832939e+1, 2.6054907504857413e+2},
                        4.7887162703308227e+1};
            case 'C':
                return {162,
                        250,
                        2,
                        {1.03766980323537846e+4, 8.92212458801008552e+2, 2.56238814582660871e+3,
                         2.19194343857831427e+3, 1.78078057261061185e+4},
                        {2.15986399716949279e+2, 1.55789559239863600e+1, 5.41318863077207766e+1,
                         4.82262643154045421e+1, 4.55902910043250358e+2},
                        6.66404553572181300e+1};
            default:
                return {408,
                        300,
                        1,
                        {4.868417937025e+4, 4.696371050071e+3, 1.218114549776e+4, 1.033801493461e+4,
                         7.142398413817e+4},
                        {3.752393004482e+2, 3.084128893659e+1, 9.434276905469e+1, 8.230686681928e+1,
                         7.002620636210e+2},
                        8.334101392503e+1};
        }
    }
    static constexpr double relaxation = 1.2;

    static int columns_of(int ranks) {
        int columns = 1;
        while (4 * columns * columns <= ranks) columns *= 2;
        return columns;
    }
    // The first inner point of a column or row, from 1.
    long cut(int piece, int pieces) const {
        return 1 + static_cast<long>(problem_.points - 2) * piece / pieces;
    }
    bool in_cube(long at) const { return at >= 0 && at < problem_.points; }
    int rank_at(int column, int row) const {
        const bool there = column >= 0 && column < columns_ && row >= 0 && row < rows_;
        return there ? row * columns_ + column : MPI_PROC_NULL;
    }

    State here(State (Exact::*value)(int, int, int) const, long i, long j, long k) const {
        return (exact_.*value)(static_cast<int>(part_.x + i), static_cast<int>(part_.y + j),
                               static_cast<int>(1 + k));
    }

    // Waits for the changes at a plane's sides that its sweep begins with, and passes on those that
    // it ends with: along x first.
    void sweep(int way, long k, void (*plane)(LuPart&, const LuFactors&, long),
               const LuFactors& factors) {
        const int count_x = static_cast<int>(part_.beside_x.size());
        const int count_y = static_cast<int>(part_.beside_y.size());
        const int from_x = rank_at(column_ + way, row_), from_y = rank_at(column_, row_ + way);
        const int to_x = rank_at(column_ - way, row_), to_y = rank_at(column_, row_ - way);
        in_mpi([&] {
            MPI_Recv(part_.beside_x.data(), count_x, MPI_DOUBLE, from_x, 1, launch_.comm,
                     MPI_STATUS_IGNORE);
            MPI_Recv(part_.beside_y.data(), count_y, MPI_DOUBLE, from_y, 2, launch_.comm,
                     MPI_STATUS_IGNORE);
        });
        plane(part_, factors, k);
        in_mpi([&] {
            MPI_Send(part_.last_x.data(), count_x, MPI_DOUBLE, to_x, 1, launch_.comm);
            MPI_Send(part_.v.at(way < 0 ? part_.ny - 1 : 0, k), count_y, MPI_DOUBLE, to_y, 2,
                     launch_.comm);
        });
    }

    LuFactors factors() const {
        const double cells = problem_.points - 1, weight = relaxation * problem_.step;
        return {.5 * cells * weight, cells * cells * weight, 2 * cells * cells * problem_.step};
    }

    // Nothing changes on the faces.
    void clear_sides() {
        std::fill(part_.beside_x.begin(), part_.beside_x.end(), 0.0);
        std::fill(part_.beside_y.begin(), part_.beside_y.end(), 0.0);
    }

    void lower_sweep() {
        clear_sides();
        for (long k = 0; k < part_.nz; ++k) sweep(-1, k, lu_lower, factors());
    }

    // The states of a plane change when the next plane's sweep has used them.
    void upper_sweep() {
        clear_sides();
        for (long k = part_.nz - 1; k >= 0; --k) {
            sweep(1, k, lu_upper, factors());
            if (k + 1 < part_.nz) advance(k + 1);
        }
        advance(0);
    }

    void advance(long k) {
        const double share = 1 / (relaxation * (2 - relaxation));
        for (long j = 0; j < part_.ny; ++j)
            for (long m = 0; m < 5; ++m) {
                double* const states = part_.u.at(j, k) + m * part_.u.width;
                const double* const changes = part_.v.at(j, k) + m * part_.v.width;
                for (long i = 0; i < part_.nx; ++i) states[i] += share * changes[i];
            }
    }

    // Two columns or rows at each side.
    void exchange() {
        LuField& u = part_.u;
        const long nx = part_.nx, ny = part_.ny;
        const auto swap = [&](MPI_Datatype type, double* out, int to, double* in, int from) {
            in_mpi([&] {
                MPI_Sendrecv(out, 1, type, to, 3, in, 1, type, from, 3, launch_.comm,
                             MPI_STATUS_IGNORE);
            });
        };
        const int before_x = rank_at(column_ - 1, row_), after_x = rank_at(column_ + 1, row_);
        const int before_y = rank_at(column_, row_ - 1), after_y = rank_at(column_, row_ + 1);
        swap(two_columns_, u.at(0, 0), before_x, u.at(0, 0) + nx, after_x);
        swap(two_columns_, u.at(0, 0) + nx - 2, after_x, u.at(0, 0) - 2, before_x);
        swap(two_rows_, u.at(0, 0) - 2, before_y, u.at(ny, 0) - 2, after_y);
        swap(two_rows_, u.at(ny - 2, 0) - 2, after_y, u.at(-2, 0) - 2, before_y);
    }

    void add_up(double* sums, int n) {
        in_mpi([&] { MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_DOUBLE, MPI_SUM, launch_.comm); });
    }

    // The sums over all inner points of the squares in `v`.
    State all_squares() {
        State sums{};
        for (long k = 0; k < part_.nz; ++k)
            for (long j = 0; j < part_.ny; ++j)
                for (std::size_t m = 0; m < 5; ++m) {
                    const double* const row =
                        part_.v.at(j, k) + static_cast<long>(m) * part_.v.width;
                    for (long i = 0; i < part_.nx; ++i) sums[m] += row[i] * row[i];
                }
        add_up(sums.data(), 5);
        return sums;
    }

    // How often a point at `at` along an axis belongs to a cell between `first` and `last`.
    static int cells_at(long at, long first, long last) {
        return at < first || at > last ? 0 : at == first || at == last ? 1 : 2;
    }

    // The sums of the squares of the five errors, and the integral of the pressure over the surface
    // of a box, whose planes the sources of NPB fix.
    std::array<double, 6> compare() {
        std::array<double, 6> sums{};
        const long n = problem_.points;
        for (long k = 0; k < part_.nz; ++k)
            for (long j = 0; j < part_.ny; ++j)
                for (long i = 0; i < part_.nx; ++i) {
                    State u;
                    load(u, part_.u.at(j, k) + i, part_.u.width);
                    const State exact = here(&Exact::at, i, j, k);
                    for (std::size_t m = 0; m < 5; ++m)
                        sums[m] += (exact[m] - u[m]) * (exact[m] - u[m]);
                    const int x = cells_at(part_.x + i, 1, n - 2);
                    const int y = cells_at(part_.y + j, 1, n - 3), z = cells_at(1 + k, 2, n - 2);
                    const double kinetic = .5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
                    const int cells =
                        (z == 1 ? x * y : 0) + (y == 1 ? x * z : 0) + (x == 1 ? y * z : 0);
                    sums[5] += cells * k2 * (u[4] - kinetic);
                }
        add_up(sums.data(), 6);
        sums[5] *= .25 / static_cast<double>((n - 1) * (n - 1));
        return sums;
    }

    const Launch launch_;
    const Problem problem_;
    const Exact exact_;
    const int columns_, rows_, column_, row_;
    LuPart part_;
    MPI_Datatype two_rows_, two_columns_;
    State changes_{}, residuals_{};
};

}  // namespace paribus::npb
