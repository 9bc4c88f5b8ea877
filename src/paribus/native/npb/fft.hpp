// Fourier transforms of a power of two from 16 on, of several series at once.
#pragma once

#include <cmath>
#include <utility>

#include "vectors.hpp"

namespace paribus::npb {

constexpr double pi = 3.141592653589793238;

// How many series are transformed together. Element i of all of them is as many real parts in a
// row, and as many imaginary parts in another place.
constexpr long lanes = 16;

// Where elements are: of element i, `at[i]` numbers behind each of the two.
struct Elements {
    double* re;
    double* im;
    const long* at;
};

namespace fft {

struct Complex {
    double re, im;
};
PARIBUS_WITHIN Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
PARIBUS_WITHIN Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
PARIBUS_WITHIN Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
PARIBUS_WITHIN Complex turned(Complex a) { return {a.im, -a.re}; }  // -i a

struct Four {
    Complex a, b, c, d;
};
PARIBUS_WITHIN Four transformed(Complex a, Complex b, Complex c, Complex d) {
    const Complex s = a + c, u = a - c, v = b + d, w = turned(b - d);
    return {s + v, u + w, s - v, u - w};
}

// The functions below are steps of Stockham's algorithm: they take elements that lie a part of the
// series apart, and leave their transforms side by side, so that all are in order in the end.
// Before a step the series consists of `stride` interleaved ones; none of what is written may lie
// in what is read.

// A step of 4, after which the rest is multiplied by `roots` of unity: three for each quarter.
PARIBUS_VECTORS inline void quarter(const double* __restrict re, const double* __restrict im,
                                    const long* from, double* __restrict to_re,
                                    double* __restrict to_im, const long* to, long length,
                                    long stride, const Complex* roots) {
    const long apart = length / 4 * stride;
    for (long p = 0; p < length / 4; ++p, roots += 3, to += 3 * stride) {
        const Complex root1 = roots[0], root2 = roots[1], root3 = roots[2];
        for (long q = 0; q < stride; ++q, ++from, ++to) {
            const long f0 = from[0], f1 = from[apart], f2 = from[2 * apart], f3 = from[3 * apart];
            const long t0 = to[0], t1 = to[stride], t2 = to[2 * stride], t3 = to[3 * stride];
            PARIBUS_INDEPENDENT
            for (long l = 0; l < lanes; ++l) {
                Four x = transformed({re[f0 + l], im[f0 + l]}, {re[f1 + l], im[f1 + l]},
                                     {re[f2 + l], im[f2 + l]}, {re[f3 + l], im[f3 + l]});
                x.b = x.b * root1;
                x.c = x.c * root2;
                x.d = x.d * root3;
                to_re[t0 + l] = x.a.re;
                to_im[t0 + l] = x.a.im;
                to_re[t1 + l] = x.b.re;
                to_im[t1 + l] = x.b.im;
                to_re[t2 + l] = x.c.re;
                to_im[t2 + l] = x.c.im;
                to_re[t3 + l] = x.d.re;
                to_im[t3 + l] = x.d.im;
            }
        }
    }
}

// The last step, of a series that is a multiple of 4.
PARIBUS_VECTORS inline void last_of_4(const double* __restrict re, const double* __restrict im,
                                      const long* from, double* __restrict to_re,
                                      double* __restrict to_im, const long* to, long stride) {
    for (long q = 0; q < stride; ++q, ++from, ++to) {
        const long f0 = from[0], f1 = from[stride], f2 = from[2 * stride], f3 = from[3 * stride];
        const long t0 = to[0], t1 = to[stride], t2 = to[2 * stride], t3 = to[3 * stride];
        PARIBUS_INDEPENDENT
        for (long l = 0; l < lanes; ++l) {
            const Four x = transformed({re[f0 + l], im[f0 + l]}, {re[f1 + l], im[f1 + l]},
                                       {re[f2 + l], im[f2 + l]}, {re[f3 + l], im[f3 + l]});
            to_re[t0 + l] = x.a.re;
            to_im[t0 + l] = x.a.im;
            to_re[t1 + l] = x.b.re;
            to_im[t1 + l] = x.b.im;
            to_re[t2 + l] = x.c.re;
            to_im[t2 + l] = x.c.im;
            to_re[t3 + l] = x.d.re;
            to_im[t3 + l] = x.d.im;
        }
    }
}

// The last step where eight are left to each.
PARIBUS_VECTORS inline void last_of_8(const double* __restrict re, const double* __restrict im,
                                      const long* from, double* __restrict to_re,
                                      double* __restrict to_im, const long* to, long stride) {
    constexpr double half = 0.70710678118654752440;  // the root of 1/2
    constexpr Complex eighth{half, -half}, third{-half, -half};
    for (long q = 0; q < stride; ++q, ++from, ++to) {
        const long f0 = from[0], f1 = from[stride], f2 = from[2 * stride], f3 = from[3 * stride];
        const long f4 = from[4 * stride], f5 = from[5 * stride], f6 = from[6 * stride],
                   f7 = from[7 * stride];
        const long t0 = to[0], t1 = to[stride], t2 = to[2 * stride], t3 = to[3 * stride];
        const long t4 = to[4 * stride], t5 = to[5 * stride], t6 = to[6 * stride],
                   t7 = to[7 * stride];
        PARIBUS_INDEPENDENT
        for (long l = 0; l < lanes; ++l) {
            const Four x = transformed({re[f0 + l], im[f0 + l]}, {re[f2 + l], im[f2 + l]},
                                       {re[f4 + l], im[f4 + l]}, {re[f6 + l], im[f6 + l]});
            Four y = transformed({re[f1 + l], im[f1 + l]}, {re[f3 + l], im[f3 + l]},
                                 {re[f5 + l], im[f5 + l]}, {re[f7 + l], im[f7 + l]});
            y.b = y.b * eighth;
            y.c = turned(y.c);
            y.d = y.d * third;
            to_re[t0 + l] = x.a.re + y.a.re;
            to_im[t0 + l] = x.a.im + y.a.im;
            to_re[t1 + l] = x.b.re + y.b.re;
            to_im[t1 + l] = x.b.im + y.b.im;
            to_re[t2 + l] = x.c.re + y.c.re;
            to_im[t2 + l] = x.c.im + y.c.im;
            to_re[t3 + l] = x.d.re + y.d.re;
            to_im[t3 + l] = x.d.im + y.d.im;
            to_re[t4 + l] = x.a.re - y.a.re;
            to_im[t4 + l] = x.a.im - y.a.im;
            to_re[t5 + l] = x.b.re - y.b.re;
            to_im[t5 + l] = x.b.im - y.b.im;
            to_re[t6 + l] = x.c.re - y.c.re;
            to_im[t6 + l] = x.c.im - y.c.im;
            to_re[t7 + l] = x.d.re - y.d.re;
            to_im[t7 + l] = x.d.im - y.d.im;
        }
    }
}

}  // namespace fft

// Transforms series of one length: element k becomes the sum of all times exp(-2 pi i j k / n).
// The inverse, but for the factor 1/n, is the same with real and imaginary parts exchanged.
class Fft {
public:
    explicit Fft(long n) : n_(n) {
        for (long length = n; length > 8; length /= 4)
            for (long p = 0; p < length / 4; ++p)
                for (long k = 1; k < 4; ++k) {
                    const double angle =
                        -2 * pi * static_cast<double>(p * k % length) / static_cast<double>(length);
                    roots_.push_back({std::cos(angle), std::sin(angle)});
                }
        for (Reals& half : work_) half.resize(static_cast<std::size_t>(2 * lanes * n));
        for (long i = 0; i < n; ++i) rows_.push_back(2 * lanes * i);
    }

    long size() const { return n_; }

    // Space for elements, that a transform may have as its input, its output, or both.
    Elements space() { return rows(work_[0]); }

    // `to` may be `from`.
    void operator()(const Elements& from, const Elements& to) {
        Elements now = from;
        const fft::Complex* roots = roots_.data();
        long length = n_, stride = 1;
        int next = 1;
        for (; length > 8; length /= 4, stride *= 4, roots += 3 * length) {
            const Elements then = rows(work_[next]);
            fft::quarter(now.re, now.im, now.at, then.re, then.im, then.at, length, stride, roots);
            now = then;
            next = 3 - next;
        }
        if (length == 8) fft::last_of_8(now.re, now.im, now.at, to.re, to.im, to.at, stride);
        else fft::last_of_4(now.re, now.im, now.at, to.re, to.im, to.at, stride);
    }

private:
    Elements rows(Reals& work) const { return {work.data(), work.data() + lanes, rows_.data()}; }

    long n_;
    std::vector<fft::Complex> roots_;
    std::vector<long> rows_;
    Reals work_[3];
};

}  // namespace paribus::npb
