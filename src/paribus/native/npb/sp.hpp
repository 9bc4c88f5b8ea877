// SP, scalar pentadiagonal: the factors are diagonalised, so that each of the five unknowns has
// equations of its own, of five points (NPB report RNR-94-007, section 3.3, and NPB 3.3).
#pragma once

#include "adi.hpp"

namespace paribus::npb::adi {

// At each position the velocity along the axis, the damping of second differences, and the speed of
// sound. Its root is taken apart, for what may set errno does not become vector instructions.
PARIBUS_VECTORS static void find_speeds(const Lines& lines, Lanes* speeds) {
    const double damping = second_damping[lines.axis];
    for (int p = lines.begin - 1; p <= lines.end; ++p) {
        const Lanes* const u = lines.u + 5 * p;
        Lanes* const found = speeds + 3 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            const double volume = 1 / u[0][l];
            const double square = u[1][l] * u[1][l] + u[2][l] * u[2][l] + u[3][l] * u[3][l];
            found[0][l] = volume * u[1][l];
            // The largest of four, which is always this one, for the volume is positive.
            found[1][l] = damping + heat * shear * volume;
            found[2][l] = k1 * k2 * volume * (u[4][l] - .5 * volume * square);
        }
    }
    for (int p = lines.begin - 1; p <= lines.end; ++p)
        for (double& sound : speeds[3 * p + 2].at) sound = std::sqrt(sound);
}

// What is above, on and below the diagonal.
struct Band {
    double lowest, low, middle, high, highest;
};

// Eliminates what is below the diagonal of a system, with `count` unknowns from x on.
template <int count>
PARIBUS_WITHIN void eliminate(const Band& band, int l, Lanes* upper, Lanes* x) {
    const double low = band.low - band.lowest * upper[-12][l];
    const double pivot = 1 / (band.middle - band.lowest * upper[-11][l] - low * upper[-6][l]);
    upper[0][l] = pivot * (band.high - low * upper[-5][l]);
    upper[1][l] = pivot * band.highest;
    for (int m = 0; m < count; ++m)
        x[m][l] = pivot * (x[m][l] - band.lowest * x[m - 10][l] - low * x[m - 5][l]);
}

// There are three systems, which differ in what the speed of sound adds. The first is that of three
// unknowns.
PARIBUS_VECTORS static void eliminate(const Lines& lines, const Weights& weights,
                                      const Lanes* speeds) {
    for (int p = lines.begin; p < lines.end; ++p) {
        const std::array<double, 5> fourth = fourth_weights(lines.low + p, lines.points);
        const Lanes* const here = speeds + 3 * p;
        Lanes* const x = lines.x + 5 * p;
        Lanes* const upper = lines.upper + 6 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            Band band;
            band.lowest = weights.fourth * fourth[0];
            band.low = weights.fourth * fourth[1] - weights.first * here[-3][l] -
                       weights.second * here[-2][l];
            band.middle = weights.fourth * fourth[2] + 2 * weights.second * here[1][l] + 1;
            band.high = weights.fourth * fourth[3] + weights.first * here[3][l] -
                        weights.second * here[4][l];
            band.highest = weights.fourth * fourth[4];
            eliminate<3>(band, l, upper, x);
            const double low = weights.first * here[-1][l], high = weights.first * here[5][l];
            band.low -= low;
            band.high += high;
            eliminate<1>(band, l, upper + 2, x + 3);
            band.low += 2 * low;
            band.high -= 2 * high;
            eliminate<1>(band, l, upper + 4, x + 4);
        }
    }
}

PARIBUS_VECTORS static void substitute(const Lines& lines) {
    for (int p = lines.end - 1; p >= lines.begin; --p) {
        const Lanes* const upper = lines.upper + 6 * p;
        Lanes* const x = lines.x + 5 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            for (int m = 0; m < 5; ++m) {
                const Lanes* const u = upper + (m < 3 ? 0 : 2 * (m - 2));
                x[m][l] -= u[0][l] * x[m + 5][l] + u[1][l] * x[m + 10][l];
            }
        }
    }
}

// From the right-hand side to the unknowns of the x axis (T_xi's inverse).
PARIBUS_VECTORS static void to_x(const Lines& lines, const Lanes* speeds) {
    const double root = std::sqrt(.5);
    for (int p = lines.begin; p < lines.end; ++p) {
        const Lanes* const u = lines.u + 5 * p;
        Lanes* const x = lines.x + 5 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            const double volume = 1 / u[0][l], c = speeds[3 * p + 2][l];
            const double a = volume * u[1][l], b = volume * u[2][l], d = volume * u[3][l];
            const double r0 = x[0][l], r1 = x[1][l], r2 = x[2][l], r3 = x[3][l], r4 = x[4][l];
            const double t =
                k2 / (c * c) * (.5 * (a * a + b * b + d * d) * r0 - a * r1 - b * r2 - d * r3 + r4);
            const double v = root * volume * (a * r0 - r1), w = root * volume * c * t;
            x[0][l] = r0 - t;
            x[1][l] = volume * (r3 - d * r0);
            x[2][l] = volume * (b * r0 - r2);
            x[3][l] = w - v;
            x[4][l] = w + v;
        }
    }
}

// From the unknowns of x to those of y, and from y to z.
PARIBUS_VECTORS static void x_to_y(const Lines& lines) {
    const double root = std::sqrt(.5);
    for (int p = lines.begin; p < lines.end; ++p) {
        Lanes* const x = lines.x + 5 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            const double r0 = x[0][l], r2 = root * x[2][l], r3 = x[3][l], r4 = x[4][l];
            x[0][l] = -x[1][l];
            x[1][l] = r0;
            x[2][l] = root * (r3 - r4);
            x[3][l] = .5 * (r3 + r4) - r2;
            x[4][l] = .5 * (r3 + r4) + r2;
        }
    }
}

PARIBUS_VECTORS static void y_to_z(const Lines& lines) {
    const double root = std::sqrt(.5);
    for (int p = lines.begin; p < lines.end; ++p) {
        Lanes* const x = lines.x + 5 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            const double r0 = root * x[0][l], r1 = x[1][l], r3 = x[3][l], r4 = x[4][l];
            x[0][l] = root * (r3 - r4);
            x[1][l] = -x[2][l];
            x[2][l] = r1;
            x[3][l] = .5 * (r3 + r4) - r0;
            x[4][l] = .5 * (r3 + r4) + r0;
        }
    }
}

// From the unknowns of z to the change of u, whose momentum along z comes first (T_zeta).
PARIBUS_VECTORS static void from_z(const Lines& lines, const Lanes* speeds) {
    const double root = std::sqrt(.5);
    for (int p = lines.begin; p < lines.end; ++p) {
        const Lanes* const u = lines.u + 5 * p;
        Lanes* const x = lines.x + 5 * p;
        PARIBUS_INDEPENDENT
        for (int l = 0; l < lanes; ++l) {
            const double density = u[0][l], volume = 1 / density, c = speeds[3 * p + 2][l];
            const double a = volume * u[3][l], b = volume * u[2][l], d = volume * u[1][l];
            const double r0 = x[0][l], r1 = x[1][l];
            const double t = root * density / c * (x[3][l] + x[4][l]);
            const double sum = x[2][l] + t, apart = root * density * (x[3][l] - x[4][l]);
            x[0][l] = sum;
            x[1][l] = d * sum + apart;
            x[2][l] = b * sum + density * r0;
            x[3][l] = a * sum - density * r1;
            x[4][l] = density * (b * r0 - a * r1) + .5 * (a * a + b * b + d * d) * sum +
                      c * c / k2 * t + d * apart;
        }
    }
}

class ScalarPentadiagonal {
public:
    static constexpr Kind kind{"sp", "NPB SP: five scalar pentadiagonal systems along each axis.",
                               false, true};
    static constexpr int reach = 2, uppers = 6;
    static constexpr bool turns = false;

    explicit ScalarPentadiagonal(const Weights& weights) : weights_(weights) {}

    // Official norms: NPB 3.3, SP/verify.f.
    static constexpr Marching problem(char size) {
        switch (size) {
            case 'S':
                return {12,
                        100,
                        0.015,
                        {2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
                         1.5840557224455615e-02, 3.4849040609362460e-02},
                        {2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
                         1.5750704994480102e-05, 3.4177666183390531e-05}};
            case 'W':
                return {36,
                        400,
                        0.0015,
                        {0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03,
                         0.2887475409984e-03, 0.3143611161242e-02},
                        {0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04,
                         0.1128838671535e-04, 0.1212845639773e-03}};
            case 'A':
                return {64,
                        400,
                        0.0015,
                        {2.4799822399300195, 1.1276337964368832, 1.5028977888770491,
                         1.4217816211695179, 2.1292113035138280},
                        {1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
                         4.7671093939528255e-05, 1.3621613399213001e-04}};
            case 'B':
                return {102,
                        400,
                        0.001,
                        {0.6903293579998e+02, 0.3095134488084e+02, 0.4103336647017e+02,
                         0.3864769009604e+02, 0.5643482272596e+02},
                        {0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02,
                         0.1694479428231e-02, 0.1847456263981e-01}};
            case 'C':
                return {162,
                        400,
                        0.00067,
                        {0.5881691581829e+03, 0.2454417603569e+03, 0.3293829191851e+03,
                         0.3081924971891e+03, 0.4597223799176e+03},
                        {0.2598120500183e+00, 0.2590888922315e-01, 0.5132886416320e-01,
                         0.4806073419454e-01, 0.5483377491301e+00}};
            default:
                return {408,
                        500,
                        0.0003,
                        {0.1044696216887e+05, 0.3204427762578e+04, 0.4648680733032e+04,
                         0.4238923283697e+04, 0.7588412036136e+04},
                        {0.5089471423669e+01, 0.5323514855894e+00, 0.1187051008971e+01,
                         0.1083734951938e+01, 0.1164108338568e+02}};
        }
    }
    static double operations(double n) {
        return 881.174 * n * n * n - 4683.91 * n * n + 11484.5 * n - 19272.4;
    }

    void see(const Lines& lines) {
        speeds_.resize(std::max(speeds_.size(), static_cast<std::size_t>(3 * lines.end + 6)));
        find_speeds(lines, speeds());
    }
    void forward(const Lines& lines) {
        if (lines.axis == 0) to_x(lines, speeds());
        eliminate(lines, weights_, speeds());
    }
    void backward(const Lines& lines) { substitute(lines); }
    void leave(const Lines& lines) {
        if (lines.axis == 0) return x_to_y(lines);
        if (lines.axis == 1) return y_to_z(lines);
        from_z(lines, speeds());
    }

private:
    Lanes* speeds() { return &speeds_[3]; }

    const Weights weights_;
    std::vector<Lanes> speeds_;  // three at each position, from -1 on
};

}  // namespace paribus::npb::adi

namespace paribus::npb {

using Sp = adi::Adi<adi::ScalarPentadiagonal>;

}  // namespace paribus::npb
