// Conjugate gradients with or without the preconditioner, and the operations that HPCG counts.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "multigrid.hpp"

namespace paribus::conjugate_gradient {

enum class Precondition { none, reference, optimised };

struct Solution {
    int iterations = 0;
    std::vector<double> residuals;  // after each iteration, in units of the first

    double residual() const { return residuals.empty() ? 1 : residuals.back(); }
};

class Solver {
public:
    Solver(Multigrid& multigrid, MPI_Comm comm) : multigrid_(multigrid), comm_(comm) {
        const Block& block = multigrid.finest().block;
        r_.resize(block.rows);
        product_.resize(block.rows);
        z_.resize(block.columns);
        p_.resize(block.columns);
    }

    double dot(const Vector& x, const Vector& y) {
        const std::size_t n = multigrid_.finest().block.rows;
        double a = 0, b = 0, c = 0, d = 0;
        for (std::size_t i = 0; i < n; i += 4) {  // the rows are a multiple of 8
            a += x[i] * y[i];
            b += x[i + 1] * y[i + 1];
            c += x[i + 2] * y[i + 2];
            d += x[i + 3] * y[i + 3];
        }
        double mine = (a + b) + (c + d), all = 0;
        multigrid_.in_mpi([&] { MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm_); });
        return all;
    }

    // Solves for `b` from zero, until the residual is `tolerance` of the first or after `most`
    // iterations.
    Solution solve(const Vector& b, Vector& x, int most, double tolerance, Precondition how) {
        const std::size_t n = b.size();
        Solution found;
        std::fill(x.begin(), x.end(), 0.0);
        std::fill(p_.begin(), p_.end(), 0.0);
        multigrid_.multiply(p_.data(), product_.data());
        for (std::size_t i = 0; i < n; ++i) r_[i] = b[i] - product_[i];
        const double first = std::sqrt(dot(r_, r_));
        double rz = 0;
        while (found.iterations < most && found.residual() > tolerance) {
            apply(how);
            const double before = rz;
            rz = dot(r_, z_);
            const double beta = found.iterations == 0 ? 0 : rz / before;
            for (std::size_t i = 0; i < n; ++i) p_[i] = z_[i] + beta * p_[i];
            multigrid_.multiply(p_.data(), product_.data());
            const double alpha = rz / dot(p_, product_);
            for (std::size_t i = 0; i < n; ++i) x[i] += alpha * p_[i];
            for (std::size_t i = 0; i < n; ++i) r_[i] -= alpha * product_[i];
            found.residuals.push_back(std::sqrt(dot(r_, r_)) / first);
            ++found.iterations;
        }
        return found;
    }

private:
    void apply(Precondition how) {
        if (how == Precondition::none) std::copy(r_.begin(), r_.end(), z_.begin());
        else if (how == Precondition::reference)
            multigrid_.precondition<true>(r_.data(), z_.data());
        else multigrid_.precondition<false>(r_.data(), z_.data());
    }

    Multigrid& multigrid_;
    MPI_Comm comm_;
    Vector r_, product_, z_, p_;
};

// Floating-point operations of one set of so many iterations: three dot products, three updates of
// vectors, a product with the matrix and a V-cycle in each iteration, of the first three also once
// before (HPCG 3.1, ReportResults.cpp).
inline double operations(double iterations, double rows, const std::vector<double>& nonzeros) {
    double cycle = 4 * nonzeros.back();
    for (std::size_t l = 0; l + 1 < nonzeros.size(); ++l) cycle += (4 + 2 + 4) * nonzeros[l];
    return (3 * iterations + 1) * 2 * rows * 2 + (iterations + 1) * 2 * nonzeros.front() +
           iterations * cycle;
}

}  // namespace paribus::conjugate_gradient
