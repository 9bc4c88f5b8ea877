// CG, conjugate gradient: the least eigenvalue of a random sparse matrix by inverse iteration, 25
// steps of conjugate gradients each (NPB report RNR-94-007, section 2.2.3, and NPB 3.3, cg.f).
#pragma once

#include <cstddef>
#include <cstdint>

#include "random.hpp"
#include "run.hpp"

namespace paribus::npb {

// A block of the matrix in compressed rows; columns count from the block's first. A row has a
// multiple of `lanes` elements, some of them 0: so a row's end is foreseen more often.
struct SparseBlock {
    static constexpr long lanes = 4;
    std::vector<long> starts;
    std::vector<int> columns;
    std::vector<double> values;

    static long whole(long elements) { return (elements + lanes - 1) / lanes * lanes; }

    // Leaves the product with `x` in `y`. Four sums, for one would wait for each addition.
    void multiply(const double* x, double* y) const {
        const int* column = columns.data();
        const double* value = values.data();
        for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
            const double* const end = values.data() + starts[row + 1];
            double a = 0, b = 0, c = 0, d = 0;
            for (; value != end; value += lanes, column += lanes) {
                a += value[0] * x[column[0]];
                b += value[1] * x[column[1]];
                c += value[2] * x[column[2]];
                d += value[3] * x[column[3]];
            }
            y[row] = (a + b) + (c + d);
        }
    }
};

struct Cg {
    static constexpr Kind kind{"cg", "NPB CG: conjugate gradient on a random sparse matrix.", true};
    InMpi in_mpi;

    // The processes form a grid of as many columns as rows, or twice as many. Process (r, c) has
    // the matrix' rows of piece r and columns of piece c, and the vectors' piece c.
    explicit Cg(const Launch& l) : launch_(l), problem_(problem(l.size)) {
        while (grid_columns_ * grid_columns_ < l.ranks) grid_columns_ *= 2;
        grid_rows_ = l.ranks / grid_columns_;
        wide_ = grid_columns_ / grid_rows_;
        row_ = l.rank / grid_columns_;
        column_ = l.rank % grid_columns_;
        first_row_ = cut(row_ * wide_);
        rows_ = cut((row_ + 1) * wide_) - first_row_;
        first_column_ = cut(column_);
        columns_ = cut(column_ + 1) - first_column_;
        build();
        for (auto* const vector : {&x_, &z_, &p_, &q_, &r_}) vector->resize(size(columns_));
        product_.resize(size(rows_));
        incoming_.resize(size(rows_));
    }

    // The random vectors that the matrix is made of, its elements before equal places are added,
    // and vectors.
    static double bytes(const Launch& l) {
        const Problem p = problem(l.size);
        const double each = p.nonzeros + 1;
        return 12.0 * p.n * each + 13.0 * p.n * each * each / l.ranks + 8.0 * 8 * p.n;
    }
    static long least_ranks(char) { return 1; }
    static long most_ranks(char size) { return size == 'S' ? 256 : 1024; }
    double operations() const {
        const double each = problem_.nonzeros * (problem_.nonzeros + 1);
        return 2.0 * problem_.iterations * problem_.n * (3 + each + 25 * (5 + each) + 3);
    }

    void prepare() { std::fill(x_.begin(), x_.end(), 1.0); }

    void run() {
        for (int i = 0; i < problem_.iterations; ++i) {
            solve();
            double products[2] = {dot(x_, z_), dot(z_, z_)};
            add_up(products, 2);
            zeta_ = problem_.shift + 1 / products[0];
            const double scale = 1 / std::sqrt(products[1]);
            for (std::size_t j = 0; j < x_.size(); ++j) x_[j] = scale * z_[j];
        }
    }

    std::string wrong() const { return differs("zeta", zeta_, problem_.zeta, 1e-10); }
    std::size_t checked() const { return 1; }
    void corrupt() { zeta_ += 1; }

private:
    struct Problem {
        int n, nonzeros, iterations;
        double shift, zeta;  // zeta is official: NPB 3.3, cg.f
    };
    static constexpr Problem problem(char size) {
        switch (size) {
            case 'S':
                return {1400, 7, 15, 10, 8.5971775078648};
            case 'W':
                return {7000, 8, 15, 12, 10.362595087124};
            case 'A':
                return {14000, 11, 15, 20, 17.130235054029};
            case 'B':
                return {75000, 13, 75, 60, 22.712745482631};
            case 'C':
                return {150000, 15, 75, 110, 28.973605592845};
            default:
                return {1500000, 21, 100, 500, 52.514532105794};
        }
    }
    static constexpr double condition = 0.1;

    static std::size_t size(long n) { return static_cast<std::size_t>(n); }
    long cut(int piece) const { return static_cast<long>(problem_.n) * piece / grid_columns_; }
    int rank_at(int row, int column) const { return row * grid_columns_ + column; }

    struct Element {
        int index;
        double value;
    };

    // Draws the matrix' random vector `i`: values at random places, and 0.5 at place i.
    void draw(Random& random, int i, std::vector<Element>& vector) const {
        int places = 1;
        while (places < problem_.n) places *= 2;
        vector.clear();
        while (vector.size() < size(problem_.nonzeros)) {
            const double value = random.next();
            const int index = static_cast<int>(places * random.next());
            const bool there = std::any_of(vector.begin(), vector.end(),
                                           [&](const Element& e) { return e.index == index; });
            if (index < problem_.n && !there) vector.push_back({index, value});
        }
        for (Element& e : vector)
            if (e.index == i) {
                e.value = 0.5;
                return;
            }
        vector.push_back({i, 0.5});
    }

    // Calls `add(row, column, value)` for each contribution to this block: weighted outer products
    // of the random vectors with themselves, and the diagonal.
    template <class Add>
    void contributions(Add add) const {
        Random random{314159265};
        random.next();
        const double ratio = std::pow(condition, 1.0 / problem_.n);
        double weight = 1;
        std::vector<Element> vector;
        for (int i = 0; i < problem_.n; ++i, weight *= ratio) {
            draw(random, i, vector);
            for (const Element& right : vector) {
                const long column = right.index - first_column_;
                if (column < 0 || column >= columns_) continue;
                for (const Element& left : vector) {
                    const long row = left.index - first_row_;
                    if (row >= 0 && row < rows_)
                        add(row, column, left.value * (right.value * weight));
                }
            }
        }
        for (long i = std::max(first_row_, first_column_);
             i < std::min(first_row_ + rows_, first_column_ + columns_); ++i)
            add(i - first_row_, i - first_column_, condition - problem_.shift);
    }

    // The random vectors are drawn twice, to count and to place: that needs less memory than a
    // list of all contributions.
    void build() {
        std::vector<long> next(size(rows_ + 1), 0);
        contributions([&](long row, long, double) { ++next[size(row) + 1]; });
        for (std::size_t row = 1; row < next.size(); ++row)
            next[row] = next[row - 1] + SparseBlock::whole(next[row]);
        matrix_.starts = next;
        matrix_.columns.resize(size(next.back()));
        matrix_.values.resize(size(next.back()));
        contributions([&](long row, long column, double value) {
            const std::size_t at = size(next[size(row)]++);
            matrix_.columns[at] = static_cast<int>(column);
            matrix_.values[at] = value;
        });
        add_equal_places();
    }

    void add_equal_places() {
        std::vector<long> place(size(columns_), -1);
        long kept = 0;
        std::size_t at = 0;
        for (std::size_t row = 0; row + 1 < matrix_.starts.size(); ++row) {
            const long begin = kept;
            const std::size_t end = size(matrix_.starts[row + 1]);
            for (; at < end; ++at) {
                long& to = place[size(matrix_.columns[at])];
                if (to >= begin) {
                    matrix_.values[size(to)] += matrix_.values[at];
                    continue;
                }
                to = kept++;
                matrix_.columns[size(to)] = matrix_.columns[at];
                matrix_.values[size(to)] = matrix_.values[at];
            }
            for (; kept - begin < SparseBlock::whole(kept - begin); ++kept) {
                matrix_.columns[size(kept)] = 0;
                matrix_.values[size(kept)] = 0;
            }
            matrix_.starts[row + 1] = kept;
        }
        matrix_.columns.resize(size(kept));
        matrix_.values.resize(size(kept));
        matrix_.columns.shrink_to_fit();
        matrix_.values.shrink_to_fit();
    }

    static double dot(const std::vector<double>& a, const std::vector<double>& b) {
        double even = 0, odd = 0;
        for (std::size_t j = 0; j + 1 < a.size(); j += 2) {
            even += a[j] * b[j];
            odd += a[j + 1] * b[j + 1];
        }
        return even + odd + (a.size() % 2 == 1 ? a.back() * b.back() : 0);
    }

    void exchange(const double* out, double* in, long n, int partner) {
        const int count = static_cast<int>(n);
        in_mpi([&] {
            MPI_Sendrecv(out, count, MPI_DOUBLE, partner, 1, in, count, MPI_DOUBLE, partner, 1,
                         launch_.comm, MPI_STATUS_IGNORE);
        });
    }

    // Adds up over the processes of a row, in which each has another piece of the vectors.
    void add_up(double* values, int n) {
        double others[2];
        for (int apart = 1; apart < grid_columns_; apart *= 2) {
            exchange(values, others, n, rank_at(row_, column_ ^ apart));
            for (int i = 0; i < n; ++i) values[i] += others[i];
        }
    }

    // Leaves this process' piece of the matrix times `x` in `y`: the blocks' products are added up
    // along a row, and what this column needs comes from the process across the diagonal. In a
    // grid twice as wide as high, each process of a row completes the half that is asked of it.
    void multiply(const std::vector<double>& x, std::vector<double>& y) {
        matrix_.multiply(x.data(), product_.data());
        double* sum = product_.data();
        long length = rows_;
        int apart = 1;
        if (wide_ == 2) {
            const long half = cut(row_ * 2 + 1) - first_row_;
            const bool second = column_ % 2 == 1;
            const long mine = second ? rows_ - half : half;
            half_exchange(half, second);
            sum += second ? half : 0;
            for (long i = 0; i < mine; ++i) sum[i] += incoming_[size(i)];
            length = mine;
            apart = 2;
        }
        for (; apart < grid_columns_; apart *= 2) {
            exchange(sum, incoming_.data(), length, rank_at(row_, column_ ^ apart));
            for (long i = 0; i < length; ++i) sum[i] += incoming_[size(i)];
        }
        const int across = rank_at(column_ / wide_, row_ * wide_ + column_ % wide_);
        if (across == launch_.rank) {
            std::copy_n(sum, columns_, y.begin());
            return;
        }
        in_mpi([&] {
            MPI_Sendrecv(sum, static_cast<int>(length), MPI_DOUBLE, across, 2, y.data(),
                         static_cast<int>(columns_), MPI_DOUBLE, across, 2, launch_.comm,
                         MPI_STATUS_IGNORE);
        });
    }

    // Gives the neighbour the half of the products that it completes, and takes its part of ours.
    void half_exchange(long half, bool second) {
        const double* const out = product_.data() + (second ? 0 : half);
        const long give = second ? half : rows_ - half, take = rows_ - give;
        const int neighbour = rank_at(row_, column_ ^ 1);
        in_mpi([&] {
            MPI_Sendrecv(out, static_cast<int>(give), MPI_DOUBLE, neighbour, 3, incoming_.data(),
                         static_cast<int>(take), MPI_DOUBLE, neighbour, 3, launch_.comm,
                         MPI_STATUS_IGNORE);
        });
    }

    // 25 steps of conjugate gradients for A z = x from z = 0, and the residual's norm, which the
    // benchmark computes as well.
    void solve() {
        std::fill(z_.begin(), z_.end(), 0.0);
        r_ = x_;
        p_ = x_;
        double rho = dot(r_, r_);
        add_up(&rho, 1);
        for (int step = 0; step < 25; ++step) {
            multiply(p_, q_);
            double curvature = dot(p_, q_);
            add_up(&curvature, 1);
            const double alpha = rho / curvature, before = rho;
            for (std::size_t j = 0; j < z_.size(); ++j) {
                z_[j] += alpha * p_[j];
                r_[j] -= alpha * q_[j];
            }
            rho = dot(r_, r_);
            add_up(&rho, 1);
            const double beta = rho / before;
            for (std::size_t j = 0; j < p_.size(); ++j) p_[j] = r_[j] + beta * p_[j];
        }
        multiply(z_, q_);
        double residual = 0;
        for (std::size_t j = 0; j < x_.size(); ++j) residual += (x_[j] - q_[j]) * (x_[j] - q_[j]);
        add_up(&residual, 1);
        residual_ = std::sqrt(residual);
    }

    const Launch launch_;
    const Problem problem_;
    int grid_rows_ = 1, grid_columns_ = 1, wide_ = 1, row_ = 0, column_ = 0;
    long first_row_ = 0, rows_ = 0, first_column_ = 0, columns_ = 0;
    SparseBlock matrix_;
    std::vector<double> x_, z_, p_, q_, r_, product_, incoming_;
    double zeta_ = 0, residual_ = 0;
};

}  // namespace paribus::npb
