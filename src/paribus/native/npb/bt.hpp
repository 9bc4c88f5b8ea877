// BT, block tridiagonal: each point of a line has an equation of 5 x 5 blocks, for itself and its
// two neighbours (NPB report RNR-94-007, section 3.3, and NPB 3.3).
#pragma once

#include "adi.hpp"

namespace paribus::npb::adi {

// Where a point is on the way of the flow: volume, velocities of which that along the axis comes
// first, energy; the last four per mass.
struct Moving {
    double volume, v, p, q, energy;

    Moving(const Lanes* u, int l)
        : volume(1 / u[0][l]),
          v(volume * u[1][l]),
          p(volume * u[2][l]),
          q(volume * u[3][l]),
          energy(volume * u[4][l]) {}
};

using Block = double[5][5];

// Where a sum of both Jacobians below has entries.
constexpr bool filled[5][5] = {{true, true, false, false, false},
                               {true, true, true, true, true},
                               {true, true, true, false, false},
                               {true, true, false, true, false},
                               {true, true, true, true, true}};

// `flow` times the Jacobian of what flows along the axis.
PARIBUS_WITHIN void set_flow(const Moving& u, double flow, Block& block) {
    const double v = flow * u.v, kinetic = .5 * (u.v * u.v + u.p * u.p + u.q * u.q);
    block[0][0] = 0;
    block[0][1] = flow;
    block[1][0] = flow * k2 * kinetic - v * u.v;
    block[1][1] = (2 - k2) * v;
    block[1][2] = -k2 * flow * u.p;
    block[1][3] = -k2 * flow * u.q;
    block[1][4] = k2 * flow;
    block[2][0] = -v * u.p;
    block[2][1] = flow * u.p;
    block[2][2] = v;
    block[3][0] = -v * u.q;
    block[3][1] = flow * u.q;
    block[3][3] = v;
    block[4][0] = v * (2 * k2 * kinetic - k1 * u.energy);
    block[4][1] = flow * (k1 * u.energy - k2 * (u.v * u.v + kinetic));
    block[4][2] = -k2 * v * u.p;
    block[4][3] = -k2 * v * u.q;
    block[4][4] = k1 * v;
}

// Adds `diffusion` times the Jacobian of what diffuses, and `damping` on the diagonal.
PARIBUS_WITHIN void add_diffusion(const Moving& u, double diffusion, double damping, Block& block) {
    const double across = diffusion * shear * u.volume, along = 4. / 3 * across;
    const double energy = heat * across;
    block[0][0] += damping;
    block[1][0] -= along * u.v;
    block[1][1] += along + damping;
    block[2][0] -= across * u.p;
    block[2][2] += across + damping;
    block[3][0] -= across * u.q;
    block[3][3] += across + damping;
    block[4][0] -= (along - energy) * u.v * u.v + (across - energy) * (u.p * u.p + u.q * u.q) +
                   energy * u.energy;
    block[4][1] += (along - energy) * u.v;
    block[4][2] += (across - energy) * u.p;
    block[4][3] += (across - energy) * u.q;
    block[4][4] += energy + damping;
}

// Subtracts the block before the diagonal times what its own position was solved for: its unknowns
// are x minus `upper` times the unknowns here.
PARIBUS_WITHIN void subtract(const Block& before, const Lanes* x, const Lanes* upper, int l,
                             Block& here, double (&known)[5]) {
    PARIBUS_UNROLL
    for (int r = 0; r < 5; ++r) {
        PARIBUS_UNROLL
        for (int k = 0; k < 5; ++k) {
            if (!filled[r][k]) continue;
            known[r] -= before[r][k] * x[k][l];
            PARIBUS_UNROLL
            for (int c = 0; c < 5; ++c) here[r][c] -= before[r][k] * upper[5 * k + c][l];
        }
    }
}

// Makes the block on the diagonal the unit matrix, by Gauss-Jordan elimination without pivoting.
PARIBUS_WITHIN void make_unit(Block& here, Block& after, double (&known)[5]) {
    PARIBUS_UNROLL
    for (int k = 0; k < 5; ++k) {
        const double pivot = 1 / here[k][k];
        known[k] *= pivot;
        PARIBUS_UNROLL
        for (int c = 0; c < 5; ++c) after[k][c] *= pivot;
        PARIBUS_UNROLL
        for (int c = k + 1; c < 5; ++c) here[k][c] *= pivot;
        PARIBUS_UNROLL
        for (int r = 0; r < 5; ++r) {
            if (r == k) continue;
            const double factor = here[r][k];
            known[r] -= factor * known[k];
            PARIBUS_UNROLL
            for (int c = 0; c < 5; ++c) after[r][c] -= factor * after[k][c];
            PARIBUS_UNROLL
            for (int c = k + 1; c < 5; ++c) here[r][c] -= factor * here[k][c];
        }
    }
}

PARIBUS_VECTORS static void eliminate_blocks(const Lines& lines, const Weights& weights) {
    const double first = weights.first, second = weights.second;
    const double damping = second * second_damping[lines.axis];
    for (int p = lines.begin; p < lines.end; ++p) {
        const Lanes* const u = lines.u + 5 * p;
        Lanes* const x = lines.x + 5 * p;
        Lanes* const upper = lines.upper + 25 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            Block before, here = {}, after = {};
            double known[5] = {x[0][l], x[1][l], x[2][l], x[3][l], x[4][l]};
            const Moving last(u - 5, l), next(u + 5, l);
            set_flow(last, -first, before);
            add_diffusion(last, -second, -damping, before);
            add_diffusion(Moving(u, l), 2 * second, 1 + 2 * damping, here);
            subtract(before, x - 5, upper - 25, l, here, known);
            set_flow(next, first, after);
            add_diffusion(next, -second, -damping, after);
            make_unit(here, after, known);
            PARIBUS_UNROLL
            for (int r = 0; r < 5; ++r) {
                x[r][l] = known[r];
                PARIBUS_UNROLL
                for (int c = 0; c < 5; ++c) upper[5 * r + c][l] = after[r][c];
            }
        }
    }
}

PARIBUS_VECTORS static void substitute_blocks(const Lines& lines) {
    for (int p = lines.end - 1; p >= lines.begin; --p) {
        const Lanes* const upper = lines.upper + 25 * p;
        Lanes* const x = lines.x + 5 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            for (int r = 0; r < 5; ++r) {
                double sum = x[r][l];
                for (int c = 0; c < 5; ++c) sum -= upper[5 * r + c][l] * x[5 + c][l];
                x[r][l] = sum;
            }
        }
    }
}

class BlockTridiagonal {
public:
    static constexpr Kind kind{"bt", "NPB BT: a system of 5 x 5 blocks along each axis.", false,
                               true};
    static constexpr int reach = 1, uppers = 25;
    static constexpr bool turns = true;

    explicit BlockTridiagonal(const Weights& weights) : weights_(weights) {}

    // Official norms: NPB 3.3, BT/verify.f.
    static constexpr Marching problem(char size) {
        switch (size) {
            case 'S':
                return {12,
                        60,
                        0.01,
                        {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
                         2.6436421275166801e-02, 1.9211784131744430e-01},
                        {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
                         7.3821238632439731e-05, 8.9269630987491446e-04}};
            case 'W':
                return {24,
                        200,
                        0.0008,
                        {0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02,
                         0.2469174937669e+02, 0.2638427874317e+03},
                        {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01,
                         0.9235878729944e+00, 0.1018045837718e+02}};
            case 'A':
                return {64,
                        200,
                        0.0008,
                        {1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01,
                         2.3665622544678910e+01, 2.5278963211748344e+02},
                        {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01,
                         8.8302063039765474e-01, 9.7379901770829278e+00}};
            case 'B':
                return {102,
                        200,
                        0.0003,
                        {1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02,
                         3.2485447959084092e+02, 3.2707541254659363e+03},
                        {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01,
                         1.2006925323559144e+01, 1.2459576151035986e+02}};
            case 'C':
                return {162,
                        200,
                        0.0001,
                        {0.62398116551764615e+04, 0.50793239190423964e+03, 0.15423530093013596e+04,
                         0.13302387929291190e+04, 0.11604087428436455e+05},
                        {0.16462008369091265e+03, 0.11497107903824313e+02, 0.41207446207461508e+02,
                         0.37087651059694167e+02, 0.36211053051841265e+03}};
            default:
                return {408,
                        250,
                        0.00002,
                        {0.2533188551738e+05, 0.2346393716980e+04, 0.6294554366904e+04,
                         0.5352565376030e+04, 0.3905864038618e+05},
                        {0.3100009377557e+03, 0.2424086324913e+02, 0.7782212022645e+02,
                         0.6835623860116e+02, 0.6065737200368e+03}};
        }
    }
    static double operations(double n) {
        return 3478.8 * n * n * n - 17655.7 * n * n + 28023.7 * n;
    }

    void see(const Lines&) {}
    void forward(const Lines& lines) { eliminate_blocks(lines, weights_); }
    void backward(const Lines& lines) { substitute_blocks(lines); }
    void leave(const Lines&) {}

private:
    const Weights weights_;
};

}  // namespace paribus::npb::adi

namespace paribus::npb {

using Bt = adi::Adi<adi::BlockTridiagonal>;

}  // namespace paribus::npb
