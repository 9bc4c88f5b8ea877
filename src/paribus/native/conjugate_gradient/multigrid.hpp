// The matrix of each level, and the V-cycle that preconditions: symmetric Gauss-Seidel before and
// after the coarser level, injection both ways (HPCG technical specification, SAND2013-8752).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "block.hpp"

namespace paribus::conjugate_gradient {

using Vector = std::vector<double>;

// 27 points: 26 in the diagonal, -1 for each neighbour in the global grid. Stored as a general
// sparse matrix, in compressed rows: the rules forbid to use that the rows are alike.
class Matrix {
public:
    explicit Matrix(Block grid) : block(std::move(grid)) {
        const std::size_t rows = block.rows;
        starts_.reserve(rows + 1);
        columns_.reserve(27 * rows);
        values_.reserve(27 * rows);
        before_.reserve(rows);
        const Triple n = block.points();
        for (int z = 0; z < n[2]; ++z)
            for (int y = 0; y < n[1]; ++y)
                for (int x = 0; x < n[0]; ++x) add_row({x, y, z});
        starts_.push_back(static_cast<long>(columns_.size()));
        inverse_.assign(rows, 1 / diagonal);
    }

    static constexpr double diagonal = 26;

    Block block;

    std::size_t nonzeros() const { return columns_.size(); }
    int neighbours(std::size_t row) const {
        return static_cast<int>(starts_[row + 1] - starts_[row] - 1);
    }

    void set_diagonal(std::size_t row, double value) {
        values_[static_cast<std::size_t>(starts_[row] + before_[row])] = value;
        inverse_[row] = 1 / value;
    }
    // For the tests: makes the matrix unsymmetric.
    void corrupt() { values_.front() += 1; }

    double row_times(std::size_t row, const double* x) const {
        return product(starts_[row], starts_[row + 1], x);
    }

    // One sweep of symmetric Gauss-Seidel, forth and back, from the `x` that is there.
    void smooth(const double* r, double* x) const {
        for (std::size_t row = 0; row < block.rows; ++row) relax(row, r, x);
        smooth_back(r, x);
    }
    // The same from an `x` of zeros, whatever lies there: forth only points before one count.
    void smooth_from_zero(const double* r, double* x) const {
        std::fill(x + block.rows, x + block.columns, 0.0);
        for (std::size_t row = 0; row < block.rows; ++row) {
            const long middle = starts_[row] + before_[row];
            // Those of other ranks are the last columns, and zero.
            x[row] = (r[row] - product(starts_[row], middle, x)) * inverse_[row];
        }
        smooth_back(r, x);
    }

private:
    void add_row(const Triple& point) {
        starts_.push_back(static_cast<long>(columns_.size()));
        for (int z = -1; z <= 1; ++z)
            for (int y = -1; y <= 1; ++y)
                for (int x = -1; x <= 1; ++x) {
                    const long column = block.column({point[0] + x, point[1] + y, point[2] + z});
                    const bool itself = x == 0 && y == 0 && z == 0;
                    if (column < 0) continue;
                    if (itself)
                        before_.push_back(static_cast<unsigned char>(
                            static_cast<long>(columns_.size()) - starts_.back()));
                    columns_.push_back(static_cast<int>(column));
                    values_.push_back(itself ? diagonal : -1);
                }
    }

    // Four sums, for one would wait for each addition.
    double product(long from, long to, const double* x) const {
        const int* column = columns_.data() + from;
        const double* value = values_.data() + from;
        double a = 0, b = 0, c = 0, d = 0;
        for (; to - from >= 4; from += 4, column += 4, value += 4) {
            a += value[0] * x[column[0]];
            b += value[1] * x[column[1]];
            c += value[2] * x[column[2]];
            d += value[3] * x[column[3]];
        }
        for (; from < to; ++from) a += *value++ * x[*column++];
        return (a + b) + (c + d);
    }
    void relax(std::size_t row, const double* r, double* x) const {
        const long middle = starts_[row] + before_[row];
        const double others =
            product(starts_[row], middle, x) + product(middle + 1, starts_[row + 1], x);
        x[row] = (r[row] - others) * inverse_[row];
    }
    void smooth_back(const double* r, double* x) const {
        for (std::size_t row = block.rows; row-- > 0;) relax(row, r, x);
    }

    std::vector<long> starts_;
    std::vector<int> columns_;
    Vector values_, inverse_;
    std::vector<unsigned char> before_;  // elements of a row before the diagonal
};

// A grid with what its part of the V-cycle needs. Each point of the next coarser level is every
// second one of this in each direction.
struct Level {
    explicit Level(Matrix matrix, const Level* finer) : a(std::move(matrix)) {
        if (finer == nullptr) return;
        r.resize(a.block.rows);
        x.resize(a.block.columns);
        product.resize(finer->a.block.rows);
        const Triple n = a.block.points();
        for (int z = 0; z < n[2]; ++z)
            for (int y = 0; y < n[1]; ++y)
                for (int i = 0; i < n[0]; ++i)
                    injected.push_back(
                        static_cast<int>(finer->a.block.column({2 * i, 2 * y, 2 * z})));
    }

    Matrix a;
    // Of a coarser level: its right side and solution, the product of the finer matrix, and for
    // each point the finer point that it is.
    Vector r, x, product;
    std::vector<int> injected;
};

class Multigrid {
public:
    static constexpr std::size_t levels = 4;

    Multigrid(const Triple& points, const Triple& processes, int rank, MPI_Comm comm)
        : comm_(comm) {
        Triple n = points;
        for (std::size_t l = 0; l < levels; ++l) {
            levels_.emplace_back(Matrix(Block(n, processes, rank)),
                                 l == 0 ? nullptr : &levels_.back());
            for (int& k : n) k /= 2;
        }
    }

    InMpi in_mpi;

    Matrix& finest() { return levels_.front().a; }
    const std::vector<Level>& all() const { return levels_; }

    // The product of the finest matrix with `x`, of as many elements as it has columns.
    void multiply(double* x, double* y) {
        Matrix& a = finest();
        a.block.exchange(x, in_mpi, comm_);
        for (std::size_t row = 0; row < a.block.rows; ++row) y[row] = a.row_times(row, x);
    }

    // The reference does everything as it is written down. The other leaves out what nothing
    // depends on: zeros of the first sweep, and the residual where it is not injected. Its
    // results are the same, bit by bit.
    template <bool reference>
    void precondition(const double* r, double* x) {
        cycle<reference>(0, r, x);
    }

private:
    template <bool reference>
    void cycle(std::size_t l, const double* r, double* x) {
        Matrix& a = levels_[l].a;
        if constexpr (reference) {
            std::fill(x, x + a.block.columns, 0.0);
            a.block.exchange(x, in_mpi, comm_);
            a.smooth(r, x);
        } else {
            a.smooth_from_zero(r, x);
        }
        if (l + 1 == levels) return;
        Level& coarse = levels_[l + 1];
        a.block.exchange(x, in_mpi, comm_);
        if constexpr (reference) {
            for (std::size_t row = 0; row < a.block.rows; ++row)
                coarse.product[row] = a.row_times(row, x);
        }
        for (std::size_t i = 0; i < coarse.injected.size(); ++i) {
            const auto row = static_cast<std::size_t>(coarse.injected[i]);
            coarse.r[i] = r[row] - (reference ? coarse.product[row] : a.row_times(row, x));
        }
        cycle<reference>(l + 1, coarse.r.data(), coarse.x.data());
        for (std::size_t i = 0; i < coarse.injected.size(); ++i)
            x[coarse.injected[i]] += coarse.x[i];
        a.block.exchange(x, in_mpi, comm_);
        a.smooth(r, x);
    }

    MPI_Comm comm_;
    std::vector<Level> levels_;
};

}  // namespace paribus::conjugate_gradient
