// FT, Fourier transform: a partial differential equation solved in the frequencies of a cube, by
// Fourier transforms along its three axes (NPB report RNR-94-007, section 2.2.5, and NPB 3.3, ft.f,
// for the official values).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "fft.hpp"
#include "random.hpp"
#include "run.hpp"

namespace paribus::npb {

constexpr long line = 8;  // numbers in a line of a cache

// Copy between rows of a plane and elements of a transform, of which each row is one series. The
// rows' lines of a cache may all meet in one of its sets: each is taken or filled at once.
PARIBUS_VECTORS inline void take_rows(const double* rows, long row, long n, double* elements) {
    for (long x = 0; x < n; x += line)
        for (long l = 0; l < lanes; ++l)
            for (long k = 0; k < line; ++k)
                elements[(x + k) * 2 * lanes + l] = rows[l * row + x + k];
}
PARIBUS_VECTORS inline void put_rows(const double* elements, double* rows, long row, long n) {
    for (long x = 0; x < n; x += line)
        for (long l = 0; l < lanes; ++l)
            for (long k = 0; k < line; ++k)
                rows[l * row + x + k] = elements[(x + k) * 2 * lanes + l];
}

// Multiplies elements i by factor[i] and by those of their lane.
PARIBUS_VECTORS inline void scale(const Elements& from, const Elements& to, long n,
                                  const double* factor, double all, const double* of_lane) {
    for (long i = 0; i < n; ++i) {
        const double* const re = from.re + from.at[i];
        const double* const im = from.im + from.at[i];
        double* const to_re = to.re + to.at[i];
        double* const to_im = to.im + to.at[i];
        const double here = factor[i] * all;
        PARIBUS_INDEPENDENT
        for (long l = 0; l < lanes; ++l) {
            to_re[l] = re[l] * (here * of_lane[l]);
            to_im[l] = im[l] * (here * of_lane[l]);
        }
    }
}

struct Ft {
    static constexpr Kind kind{"ft", "NPB FT: Fourier transform in 3 dimensions, all-to-all.",
                               true};
    InMpi in_mpi;

    // The processes form a grid of `across` times `along`. Process (i, j) has part i of y and part
    // j of z, all x; for a transform along y, part i of x and j of z; along z, part i of x and j
    // of y. As long as there are planes enough, `across` is 1.
    explicit Ft(const Launch& l)
        : launch_(l),
          problem_(problem(l.size)),
          fft_x_(problem_.x),
          fft_y_(problem_.y),
          fft_z_(problem_.z) {
        along_ = std::min<long>(l.ranks, planes(problem_));
        across_ = l.ranks / along_;
        i_ = l.rank / along_;
        j_ = l.rank % along_;
        MPI_Comm_split(l.comm, static_cast<int>(j_), static_cast<int>(i_), &same_z_);
        MPI_Comm_split(l.comm, static_cast<int>(i_), static_cast<int>(j_), &same_x_);
        lay_out();
        const auto numbers = size(std::max(across_ * layers_ * slab_, problem_.z * turned_slab_));
        frequencies_.resize(numbers);
        field_.resize(numbers);
        if (l.ranks > 1) other_.resize(numbers);
        now_ = field_.data();
        spare_ = other_.data();
    }

    // The frequencies, what they are transformed to, and what is received.
    static double bytes(const Launch& l) {
        const Problem p = problem(l.size);
        const double points = static_cast<double>(p.x * p.y) * static_cast<double>(p.z);
        return (l.ranks > 1 ? 3 : 2) * 16 * points / l.ranks;
    }
    static long least_ranks(char) { return 1; }
    // A transform along x takes as many rows as it has lanes, along y as many columns.
    static long most_ranks(char size) {
        const Problem p = problem(size);
        return planes(p) * std::min(p.x, p.y) / lanes;
    }
    double operations() const {
        const double log = std::log(points());
        return points() *
               (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * problem_.iterations);
    }
    void prepare() {}

    // The official region has everything in it, also what the problem starts from.
    void run() {
        draw();
        transform_from_x_to_z();
        for (int t = 1; t <= problem_.iterations; ++t) {
            transform_back(t);
            add_up(t);
        }
    }

    // The official distance is that of complex numbers; the parts that make it too large are named.
    std::string wrong() const {
        std::string all;
        for (std::size_t t = 0; t < size(problem_.iterations); ++t) {
            const fft::Complex official = problem_.sums[t], error = sums_[t] - official;
            const double most = 1e-12 * std::hypot(official.re, official.im);
            if (std::hypot(error.re, error.im) <= most) continue;
            const std::string which = "part of checksum " + std::to_string(t + 1);
            const std::string real = "the real " + which, imaginary = "the imaginary " + which;
            const double share = most / std::sqrt(2.0);
            for (const std::string& one :
                 {differs(real.c_str(), sums_[t].re, official.re, share / official.re),
                  differs(imaginary.c_str(), sums_[t].im, official.im, share / official.im)})
                if (!one.empty()) all += (all.empty() ? "" : "; ") + one;
        }
        return all;
    }
    std::size_t checked() const { return 2 * size(problem_.iterations); }
    void corrupt() { sums_[0].im += 1; }

private:
    static constexpr int most_iterations = 25;
    struct Problem {
        long x, y, z;
        int iterations;
        fft::Complex sums[most_iterations];  // official: NPB 3.3, ft.f
    };
    static constexpr Problem problem(char size) {
        switch (size) {
            case 'S':
                return {64,
                        64,
                        64,
                        6,
                        {{5.546087004964e2, 4.845363331978e2},
                         {5.546385409189e2, 4.865304269511e2},
                         {5.546148406171e2, 4.883910722336e2},
                         {5.545423607415e2, 4.901273169046e2},
                         {5.544255039624e2, 4.917475857993e2},
                         {5.542683411902e2, 4.932597244941e2}}};
            case 'W':
                return {128,
                        128,
                        32,
                        6,
                        {{5.673612178944e2, 5.293246849175e2},
                         {5.631436885271e2, 5.282149986629e2},
                         {5.594024089970e2, 5.270996558037e2},
                         {5.560698047020e2, 5.260027904925e2},
                         {5.530898991250e2, 5.249400845633e2},
                         {5.504159734538e2, 5.239212247086e2}}};
            case 'A':
                return {256,
                        256,
                        128,
                        6,
                        {{5.046735008193e2, 5.114047905510e2},
                         {5.059412319734e2, 5.098809666433e2},
                         {5.069376896287e2, 5.098144042213e2},
                         {5.077892868474e2, 5.101336130759e2},
                         {5.085233095391e2, 5.104914655194e2},
                         {5.091487099959e2, 5.107917842803e2}}};
            case 'B':
                return {
                    512,
                    256,
                    256,
                    20,
                    {{5.177643571579e2, 5.077803458597e2}, {5.154521291263e2, 5.088249431599e2},
                     {5.146409228649e2, 5.096208912659e2}, {5.142378756213e2, 5.101023387619e2},
                     {5.139626667737e2, 5.103976610617e2}, {5.137423460082e2, 5.105948019802e2},
                     {5.135547056878e2, 5.107404165783e2}, {5.133910925466e2, 5.108576573661e2},
                     {5.132470705390e2, 5.109577278523e2}, {5.131197729984e2, 5.110460304483e2},
                     {5.130070319283e2, 5.111252433800e2}, {5.129070537032e2, 5.111968077718e2},
                     {5.128182883502e2, 5.112616233064e2}, {5.127393733383e2, 5.113203605551e2},
                     {5.126691062020e2, 5.113735928093e2}, {5.126064276004e2, 5.114218460548e2},
                     {5.125504076570e2, 5.114656139760e2}, {5.125002331720e2, 5.115053595966e2},
                     {5.124551951846e2, 5.115415130407e2}, {5.124146770029e2, 5.115744692211e2}}};
            case 'C':
                return {
                    512,
                    512,
                    512,
                    20,
                    {{5.195078707457e2, 5.149019699238e2}, {5.155422171134e2, 5.127578201997e2},
                     {5.144678022222e2, 5.122251847514e2}, {5.140150594328e2, 5.121090289018e2},
                     {5.137550426810e2, 5.121143685824e2}, {5.135811056728e2, 5.121496764568e2},
                     {5.134569343165e2, 5.121870921893e2}, {5.133651975661e2, 5.122193250322e2},
                     {5.132955192805e2, 5.122454735794e2}, {5.132410471738e2, 5.122663649603e2},
                     {5.131971141679e2, 5.122830879827e2}, {5.131605205716e2, 5.122965869718e2},
                     {5.131290734194e2, 5.123075927445e2}, {5.131012720314e2, 5.123166486553e2},
                     {5.130760908195e2, 5.123241541685e2}, {5.130528295923e2, 5.123304037599e2},
                     {5.130310107773e2, 5.123356167976e2}, {5.130103090133e2, 5.123399592211e2},
                     {5.129905029333e2, 5.123435588985e2}, {5.129714421109e2, 5.123465164008e2}}};
            default:
                return {2048,
                        1024,
                        1024,
                        25,
                        {{5.122230065252e2, 5.118534037109e2}, {5.120463975765e2, 5.117061181082e2},
                         {5.119865766760e2, 5.117096364601e2}, {5.119518799488e2, 5.117373863950e2},
                         {5.119269088223e2, 5.117680347632e2}, {5.119082416858e2, 5.117967875532e2},
                         {5.118943814638e2, 5.118225281841e2}, {5.118842385057e2, 5.118451629348e2},
                         {5.118769435632e2, 5.118649119387e2}, {5.118718203448e2, 5.118820803844e2},
                         {5.118683569061e2, 5.118969781011e2}, {5.118661708593e2, 5.119098918835e2},
                         {5.118649768950e2, 5.119210777066e2}, {5.118645605626e2, 5.119307604484e2},
                         {5.118647586618e2, 5.119391362671e2}, {5.118654451572e2, 5.119463757241e2},
                         {5.118665212451e2, 5.119526269238e2}, {5.118679083821e2, 5.119580184108e2},
                         {5.118695433664e2, 5.119626617538e2}, {5.118713748264e2, 5.119666538138e2},
                         {5.118733606701e2, 5.119700787219e2}, {5.118754661974e2, 5.119730095953e2},
                         {5.118776626738e2, 5.119755100241e2}, {5.118799262314e2, 5.119776353561e2},
                         {5.118822370068e2, 5.119794338060e2}}};
        }
    }
    static constexpr double diffusion = 1e-6;

    static std::size_t size(long n) { return static_cast<std::size_t>(n); }
    static long planes(const Problem& p) { return std::min(p.y, p.z); }
    double points() const {
        return static_cast<double>(problem_.x * problem_.y) * static_cast<double>(problem_.z);
    }

    // A row is a part of x, real parts and then imaginary ones; a slab is rows of one z. As all-to-
    // all sends and receives them, slabs lie by process and by z: first parts of x, later of y.
    void lay_out() {
        columns_ = problem_.x / across_;
        row_ = 2 * columns_;
        layers_ = problem_.z / along_;
        rows_ = problem_.y / across_;
        turned_rows_ = problem_.y / along_;
        slab_ = rows_ * row_;
        turned_slab_ = turned_rows_ * row_;
        for (long y = 0; y < problem_.y; ++y) {
            at_y_.push_back(y / rows_ * layers_ * slab_ + y % rows_ * row_);
            at_turned_y_.push_back(y / turned_rows_ * layers_ * turned_slab_ +
                                   y % turned_rows_ * row_);
        }
        for (long z = 0; z < problem_.z; ++z) at_z_.push_back(z * turned_slab_);
    }

    // Real and imaginary parts in turn are random numbers, in the order of x, y, z. As in EP they
    // are drawn in lanes that do not wait for each other.
    void draw() {
        constexpr std::size_t draws = 8;
        constexpr std::uint64_t leap = power(multiplier, draws);
        for (long z = 0; z < layers_; ++z) {
            Random random{314159265};
            const long before = (j_ * layers_ + z) * problem_.y + i_ * rows_;
            random.skip(2 * static_cast<std::uint64_t>(before * problem_.x));
            std::array<std::uint64_t, draws> drawn;
            for (std::uint64_t& one : drawn) {
                random.next();
                one = random.x;
            }
            for (long y = 0; y < rows_; ++y)
                for (long part = 0; part < across_; ++part) {
                    double* const row = now_ + (part * layers_ + z) * slab_ + y * row_;
                    for (long x = 0; x < columns_; x += draws / 2)
                        for (std::size_t d = 0; d < draws; ++d) {
                            row[size(x) + d / 2 + d % 2 * size(columns_)] = unit(drawn[d]);
                            drawn[d] = times(leap, drawn[d]);
                        }
                }
        }
    }

    void transform_from_x_to_z() {
        for (long z = 0; z < layers_; ++z) along_x(z, false);
        exchange(same_z_, across_, slab_);
        for (long z = 0; z < layers_; ++z)
            along_y(z, at_y_, slab_, at_turned_y_, turned_slab_, false);
        if (launch_.ranks > 1) std::swap(now_, spare_);
        exchange(same_x_, along_, turned_slab_);
        for (long y = 0; y < turned_rows_; ++y)
            for (long x = 0; x < columns_; x += lanes)
                fft_z_(at(now_ + y * row_ + x, at_z_),
                       at(frequencies_.data() + y * row_ + x, at_z_));
    }

    // Leaves the field after `t` steps.
    void transform_back(int t) {
        const Reals of_x = decay(problem_.x, t), of_y = decay(problem_.y, t),
                    of_z = decay(problem_.z, t);
        for (long y = 0; y < turned_rows_; ++y)
            for (long x = 0; x < columns_; x += lanes) {
                const long place = y * row_ + x;
                scale(at(frequencies_.data() + place, at_z_), fft_z_.space(), problem_.z,
                      of_z.data(), of_y[size(j_ * turned_rows_ + y)],
                      of_x.data() + i_ * columns_ + x);
                fft_z_(exchanged(fft_z_.space()), exchanged(at(now_ + place, at_z_)));
            }
        exchange(same_x_, along_, turned_slab_);
        for (long z = 0; z < layers_; ++z)
            along_y(z, at_turned_y_, turned_slab_, at_y_, slab_, true);
        if (launch_.ranks > 1) std::swap(now_, spare_);
        exchange(same_z_, across_, slab_);
        for (long z = 0; z < layers_; ++z) along_x(z, true);
    }

    // What each frequency of an axis has lost after `t` steps.
    static Reals decay(long n, int t) {
        Reals factors;
        for (long i = 0; i < n; ++i) {
            const double frequency = static_cast<double>(i < n / 2 ? i : i - n);
            factors.push_back(std::exp(-4 * diffusion * pi * pi * frequency * frequency * t));
        }
        return factors;
    }

    Elements at(double* first, const std::vector<long>& places) const {
        return {first, first + columns_, places.data()};
    }
    static Elements exchanged(const Elements& e) { return {e.im, e.re, e.at}; }

    void along_x(long z, bool back) {
        const Elements space = fft_x_.space();
        for (long y = 0; y < rows_; y += lanes) {
            for (long part = 0; part < across_; ++part) {
                const double* const first = now_ + (part * layers_ + z) * slab_ + y * row_;
                double* const to = space.re + part * columns_ * 2 * lanes;
                take_rows(first, row_, columns_, to);
                take_rows(first + columns_, row_, columns_, to + lanes);
            }
            if (back) fft_x_(exchanged(space), exchanged(space));
            else fft_x_(space, space);
            for (long part = 0; part < across_; ++part) {
                double* const first = now_ + (part * layers_ + z) * slab_ + y * row_;
                const double* const from = space.re + part * columns_ * 2 * lanes;
                put_rows(from, first, row_, columns_);
                put_rows(from + lanes, first + columns_, row_, columns_);
            }
        }
    }

    void along_y(long z, const std::vector<long>& from, long slab, const std::vector<long>& to,
                 long to_slab, bool back) {
        double* const target = launch_.ranks > 1 ? spare_ : now_;
        for (long x = 0; x < columns_; x += lanes) {
            const Elements in = at(now_ + z * slab + x, from),
                           out = at(target + z * to_slab + x, to);
            if (back) fft_y_(exchanged(in), exchanged(out));
            else fft_y_(in, out);
        }
    }

    // Gives each process of `comm` its slabs.
    void exchange(MPI_Comm comm, long processes, long slab) {
        if (processes == 1) return;
        const int count = static_cast<int>(layers_ * slab);
        in_mpi([&] { MPI_Alltoall(now_, count, MPI_DOUBLE, spare_, count, MPI_DOUBLE, comm); });
        std::swap(now_, spare_);
    }

    // The official checksum: 1024 points of the field.
    void add_up(int t) {
        fft::Complex mine{0, 0};
        for (long k = 1; k <= 1024; ++k) {
            const long x = k % problem_.x, y = 3 * k % problem_.y - i_ * rows_,
                       z = 5 * k % problem_.z - j_ * layers_;
            if (y < 0 || y >= rows_ || z < 0 || z >= layers_) continue;
            const double* const found =
                now_ + (x / columns_ * layers_ + z) * slab_ + y * row_ + x % columns_;
            mine = mine + fft::Complex{found[0], found[columns_]};
        }
        fft::Complex& sum = sums_[size(t - 1)];
        in_mpi([&] { MPI_Allreduce(&mine, &sum, 2, MPI_DOUBLE, MPI_SUM, launch_.comm); });
        sum = {sum.re / points(), sum.im / points()};
    }

    const Launch launch_;
    const Problem problem_;
    Fft fft_x_, fft_y_, fft_z_;
    long across_ = 1, along_ = 1, i_ = 0, j_ = 0;
    MPI_Comm same_x_ = MPI_COMM_NULL, same_z_ = MPI_COMM_NULL;
    long columns_ = 0, row_ = 0, rows_ = 0, turned_rows_ = 0, layers_ = 0, slab_ = 0;
    long turned_slab_ = 0;
    std::vector<long> at_y_, at_turned_y_, at_z_;
    Reals frequencies_, field_, other_;
    double *now_ = nullptr, *spare_ = nullptr;
    std::array<fft::Complex, most_iterations> sums_{};
};

}  // namespace paribus::npb
