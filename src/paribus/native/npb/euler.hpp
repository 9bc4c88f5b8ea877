// What LU, SP and BT have in common: the compressible Navier-Stokes equations on a cube of n points
// along each axis, driven to an exact solution that is a polynomial (NPB report RNR-94-007, section
// 3, and NPB 3.3: setcoeff.f, exact.f, erhs.f). A state has density, momentum along x, y, z,
// energy.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "quad.hpp"
#include "run.hpp"

namespace paribus::npb {

template <class Real>
using Five = std::array<Real, 5>;
using State = Five<double>;

// The report's constants k1 to k5, of which the first is the ratio of specific heats.
constexpr double k1 = 1.4, k2 = 0.4, k3 = 0.1, k4 = 1.0, k5 = 1.4;
constexpr double shear = k3 * k4, heat = k1 * k5;

// What the second differences of a state are multiplied by, along each axis; and the fourth.
constexpr double second_damping[3] = {0.75, 0.75, 1.0};
constexpr double fourth_damping = 0.25;

// The coefficients of the exact solution (`ce`): 1, then x, y, z, then their squares, cubes and
// fourth powers.
constexpr double exact_coefficients[5][13] = {
    {2, 0, 0, 4, 5, 3, .5, .02, .01, .03, .5, .4, .3},
    {1, 0, 0, 0, 1, 2, 3, .01, .03, .02, .4, .3, .5},
    {2, 2, 0, 0, 0, 2, 3, .04, .03, .05, .3, .5, .4},
    {2, 2, 0, 0, 0, 2, 3, .03, .05, .04, .2, .1, .3},
    {5, 4, 3, 2, .1, .4, .3, .05, .04, .03, .1, .3, .2},
};

// The weights of a fourth difference at points at - 2 to at + 2 of an axis, of which faces are
// none.
constexpr std::array<double, 5> fourth_weights(int at, int points) {
    const bool beside_a_face = at == 1 || at == points - 2;
    return {at >= 3 ? 1.0 : 0.0, at >= 2 ? -4.0 : 0.0, beside_a_face ? 5.0 : 6.0,
            at <= points - 3 ? -4.0 : 0.0, at <= points - 4 ? 1.0 : 0.0};
}

// What flows along an axis at a point, and what diffuses. A right-hand side is the first
// differences of `flow` over -2 h, the second differences of `diffusion` over h^2, and damping.
template <class Real>
struct Fluxes {
    Five<Real> flow, diffusion;
};

// Of a state, or of the states of several points.
template <std::size_t axis, class Real>
PARIBUS_WITHIN void fluxes(const Five<Real>& u, Fluxes<Real>& f) {
    const Real volume = 1. / u[0];
    const Real v[3] = {volume * u[1], volume * u[2], volume * u[3]};
    const Real square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    const Real along = v[axis], kinetic = .5 * u[0] * square;
    f.flow = {u[1 + axis], u[1] * along, u[2] * along, u[3] * along,
              (k1 * u[4] - k2 * kinetic) * along};
    f.flow[1 + axis] += k2 * (u[4] - kinetic);
    f.diffusion = {second_damping[axis] * u[0], shear * v[0], shear * v[1], shear * v[2],
                   shear * (.5 * (1 - heat) * square + along * along / 6. + heat * volume * u[4])};
    f.diffusion[1 + axis] *= 4. / 3;
    for (std::size_t m = 1; m < 5; ++m) f.diffusion[m] += second_damping[axis] * u[m];
}

// The exact solution, the state that time begins with, and the forcing that keeps the exact
// solution steady; points are counted from 0 along each axis.
class Exact {
public:
    explicit Exact(int points) : points_(points) {
        for (std::size_t axis = 0; axis < 3; ++axis)
            for (int i = 0; i < points; ++i) {
                const double x = place(i);
                State part{};
                for (std::size_t m = 0; m < 5; ++m) {
                    const double* const c = exact_coefficients[m] + 1 + axis;
                    part[m] = x * (c[0] + x * (c[3] + x * (c[6] + x * c[9])));
                    if (axis == 0) part[m] += exact_coefficients[m][0];
                }
                along_[axis].push_back(part);
            }
    }

    State at(int i, int j, int k) const {
        State sum{};
        for (std::size_t m = 0; m < 5; ++m) sum[m] = part(0, i)[m] + part(1, j)[m] + part(2, k)[m];
        return sum;
    }

    // Exact on the faces, and within blended from the six points of the faces along the axes.
    State initial(int i, int j, int k) const {
        const int last = points_ - 1;
        const bool face = i == 0 || j == 0 || k == 0 || i == last || j == last || k == last;
        if (face) return at(i, j, k);
        const State px = between(i, at(0, j, k), at(last, j, k));
        const State py = between(j, at(i, 0, k), at(i, last, k));
        const State pz = between(k, at(i, j, 0), at(i, j, last));
        State blend{};
        for (std::size_t m = 0; m < 5; ++m)
            blend[m] = px[m] + py[m] + pz[m] - px[m] * py[m] - py[m] * pz[m] - pz[m] * px[m] +
                       px[m] * py[m] * pz[m];
        return blend;
    }

    // What a right-hand side must add; not on the faces, which stay as they are.
    State forcing(int i, int j, int k) const {
        State sum{};
        change<0>(i, [&](int p) { return at(p, j, k); }, sum);
        change<1>(j, [&](int p) { return at(i, p, k); }, sum);
        change<2>(k, [&](int p) { return at(i, j, p); }, sum);
        for (double& value : sum) value = -value;
        return sum;
    }

private:
    double place(int i) const { return static_cast<double>(i) / (points_ - 1); }
    const State& part(std::size_t axis, int i) const {
        return along_[axis][static_cast<std::size_t>(i)];
    }

    State between(int i, const State& first, const State& last) const {
        const double x = place(i);
        State sum{};
        for (std::size_t m = 0; m < 5; ++m) sum[m] = (1 - x) * first[m] + x * last[m];
        return sum;
    }

    // Adds the differences along one axis of the exact solution, which `line` returns, at point p.
    template <std::size_t axis, class Line>
    void change(int p, Line line, State& sum) const {
        const double cells = points_ - 1;
        Fluxes<double> before, here, after;
        fluxes<axis>(line(p - 1), before);
        fluxes<axis>(line(p), here);
        fluxes<axis>(line(p + 1), after);
        for (std::size_t m = 0; m < 5; ++m)
            sum[m] +=
                cells * cells * (before.diffusion[m] - 2 * here.diffusion[m] + after.diffusion[m]) -
                .5 * cells * (after.flow[m] - before.flow[m]);
        const std::array<double, 5> weights = fourth_weights(p, points_);
        for (int q = 0; q < 5; ++q) {
            if (weights[static_cast<std::size_t>(q)] == 0) continue;  // maybe outside the cube
            const State u = line(p + q - 2);
            for (std::size_t m = 0; m < 5; ++m)
                sum[m] -= fourth_damping * weights[static_cast<std::size_t>(q)] * u[m];
        }
    }

    int points_;
    std::array<std::vector<State>, 3> along_;
};

// The root mean squares of five sums of squares over the inner points.
inline State norms(const State& sums, int points) {
    const double inner = static_cast<double>(points - 2);
    State roots{};
    for (std::size_t m = 0; m < 5; ++m) roots[m] = std::sqrt(sums[m] / (inner * inner * inner));
    return roots;
}

// Whether five norms lie within the official tolerance, and a sentence for each that does not.
inline std::string norms_differ(const std::string& what, const State& found,
                                const State& official) {
    std::string wrong;
    for (std::size_t m = 0; m < 5; ++m) {
        const std::string name = what + " " + std::to_string(m + 1);
        wrong = both(wrong, differs(name.c_str(), found[m], official[m], 1e-8));
    }
    return wrong;
}

}  // namespace paribus::npb
