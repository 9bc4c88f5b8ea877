// Conjugate gradients by the rules of HPCG, the High Performance Conjugate Gradients benchmark
// (Dongarra, Heroux, Luszczek, 2016): phases, checks, count of operations and rating are those of
// its reference implementation 3.1.
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "conjugate_gradient/solver.hpp"

using namespace paribus;
using namespace paribus::conjugate_gradient;

namespace {

constexpr int reference_iterations = 50;
constexpr double official_s = 1800;

constexpr Option options[] = {
    {"nx", "48", "points of a rank in x, a multiple of 8", 16, 512},
    {"ny", "48", "points of a rank in y", 16, 512},
    {"nz", "48", "points of a rank in z", 16, 512},
    {"seconds", "3", "how long sets are timed; an official rating takes 1800", 0, 1 << 20},
    {"sets", "0", "how many sets are timed; 0: as many as the seconds take", 0, 1 << 20},
    {}};

struct Asked {
    Triple points;
    Triple processes;
    double seconds;
    long sets;
};

Asked asked_of(Session& session) {
    const auto number = [&](const char* name) {
        return session.arguments.numbers.at(name).front();
    };
    const auto points = [&](const char* name) { return static_cast<int>(number(name)); };
    const Asked asked{{points("nx"), points("ny"), points("nz")},
                      shape_of(session.ranks),
                      static_cast<double>(number("seconds")),
                      number("sets")};
    for (const int n : asked.points)
        if (n % 8 != 0)
            session.refuse("--nx, --ny and --nz must be multiples of 8, for three coarser grids");
    const auto text = [](const Triple& t) {
        return std::to_string(t[0]) + " x " + std::to_string(t[1]) + " x " + std::to_string(t[2]);
    };
    if (least_to_largest(asked.points) < 0.125)
        session.refuse("HPCG's rules forbid a block of " + text(asked.points) +
                       " points: its sides must not differ by more than a factor of 8");
    if (least_to_largest(asked.processes) < 0.125)
        session.refuse("HPCG's rules forbid " + std::to_string(session.ranks) +
                       " ranks: as blocks they are " + text(asked.processes));
    return asked;
}

// Of one rank: rows of 27 elements of 12 bytes and 17 more, those of coarser grids, and vectors.
Need need(const Arguments& asked, int) {
    const auto points = [&](const char* name) {
        return static_cast<double>(asked.numbers.at(name).front());
    };
    const double x = points("nx"), y = points("ny"), z = points("nz");
    return {x * y * z * (341 * 8 / 7.0 + 100) + 2 * (x * y + y * z + x * z) * 150, "the grid does"};
}

class Benchmark {
public:
    Benchmark(Session& session, const Asked& asked) : session_(session), asked_(asked) {
        setup_s_ = slowest_s(session, [&] { set_up(); });
    }

    void measure() {
        const Solution reference =
            solver_->solve(b_, x_, reference_iterations, 0, Precondition::reference);
        if (session_.arguments.corrupt && session_.rank == session_.ranks - 1)
            multigrid_->finest().corrupt();
        test_spectrum();
        test_symmetry();
        find_iterations(reference.residual());
        time_sets();
        test_reproducibility();
        report();
    }

private:
    void set_up() {
        multigrid_ = std::make_unique<Multigrid>(asked_.points, asked_.processes, session_.rank,
                                                 session_.comm);
        solver_ = std::make_unique<Solver>(*multigrid_, session_.comm);
        const Matrix& a = multigrid_->finest();
        b_.resize(a.block.rows);
        x_.resize(a.block.columns);
        for (std::size_t row = 0; row < b_.size(); ++row)  // the exact solution is 1 everywhere
            b_[row] = Matrix::diagonal - a.neighbours(row);
    }

    void invalid_if(bool wrong, const std::string& why) {
        session_.give_up_if(wrong && session_.rank == 0 ? "the result is INVALID: " + why : "");
        session_.verify("", -1, session_.rank == 0);
    }

    // A diagonal a million times as large, and yet larger in nine rows, leaves ten distinct
    // eigenvalues at most: so many iterations suffice, and one with the preconditioner.
    void test_spectrum() {
        Matrix& a = multigrid_->finest();
        const Vector kept = b_;
        for (std::size_t row = 0; row < b_.size(); ++row) {
            const bool first = session_.rank == 0 && row < 9;
            const double scale = 1e6 * (first ? static_cast<double>(row + 2) : 1);
            a.set_diagonal(row, Matrix::diagonal * scale);
            b_[row] *= scale;
        }
        for (const auto& [how, expected] :
             {std::pair{Precondition::none, 12}, std::pair{Precondition::optimised, 2}})
            for (int trial = 0; trial < 2; ++trial) {
                const Solution found = solver_->solve(b_, x_, 50, 1e-12, how);
                invalid_if(found.iterations > expected, "with a diagonal that dominates it took " +
                                                            std::to_string(found.iterations) +
                                                            " iterations, not " +
                                                            std::to_string(expected));
            }
        for (std::size_t row = 0; row < b_.size(); ++row) a.set_diagonal(row, Matrix::diagonal);
        b_ = kept;
    }

    // x'Ay and y'Ax, and the same of the preconditioner, must agree but for rounding.
    void test_symmetry() {
        const std::size_t columns = x_.size();
        Vector x(columns), y(columns), z(columns);
        fill(x, 1);
        fill(y, 2);
        const double norms =
            std::sqrt(solver_->dot(x, x)) * std::sqrt(solver_->dot(y, y)) * 2 * Matrix::diagonal;
        const auto departure = [&](auto apply) {
            apply(y, z);
            const double one = solver_->dot(x, z);
            apply(x, z);
            const double other = solver_->dot(y, z);
            return std::abs(one - other) / (2 * norms * std::numeric_limits<double>::epsilon());
        };
        const double product =
            departure([&](Vector& v, Vector& to) { multigrid_->multiply(v.data(), to.data()); });
        const double cycle = departure(
            [&](Vector& v, Vector& to) { multigrid_->precondition<false>(v.data(), to.data()); });
        for (const auto& [name, found] :
             {std::pair{"matrix", product}, std::pair{"preconditioner", cycle}})
            invalid_if(!(found <= 1), std::string("the departure from symmetry of the ") + name +
                                          " is " + json(found) + " times rounding, not 1");
    }

    // Numbers from 1 to 2 that differ by rank and vector (splitmix64).
    void fill(Vector& vector, std::uint64_t which) const {
        std::uint64_t state = which + 1000 * static_cast<std::uint64_t>(session_.rank);
        for (double& value : vector) {
            std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
            value = 1 + static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
        }
    }

    // How many iterations reach the residual of the reference, and how many sets the time takes.
    void find_iterations(double tolerance) {
        Solution found;
        const double seconds = slowest_s(session_, [&] {
            found = solver_->solve(b_, x_, 10 * reference_iterations, tolerance,
                                   Precondition::optimised);
        });
        invalid_if(!(found.residual() <= tolerance * (1 + 1e-6)),
                   "the residual of the reference was not reached");
        iterations_ = std::max(reference_iterations, found.iterations);
        sets_ = asked_.sets > 0 ? asked_.sets : static_cast<long>(asked_.seconds / seconds) + 1;
        set_delay(session_, seconds);
    }

    void time_sets() {
        multigrid_->in_mpi.clear();
        for (long set = 0; set < sets_; ++set) {
            Solution found;
            times_.push_back(slowest_s(session_, [&] {
                found = solver_->solve(b_, x_, iterations_, 0, Precondition::optimised);
                session_.delay();
            }));
            residuals_.push_back(found.residual());
            history_ = found.residuals;
        }
    }

    void test_reproducibility() {
        double mean = 0, variance = 0;
        for (const double r : residuals_) mean += r / static_cast<double>(sets_);
        for (const double r : residuals_)
            variance += (r - mean) * (r - mean) / static_cast<double>(sets_);
        invalid_if(!(variance < 1e-6), "the scaled residual of the sets has a variance of " +
                                           json(variance) + ", not below 1e-6");
    }

    void report() {
        const double rows = static_cast<double>(b_.size()) * session_.ranks;
        std::vector<double> mine, nonzeros(Multigrid::levels);
        for (const Level& level : multigrid_->all())
            mine.push_back(static_cast<double>(level.a.nonzeros()));
        MPI_Allreduce(mine.data(), nonzeros.data(), static_cast<int>(Multigrid::levels), MPI_DOUBLE,
                      MPI_SUM, MPI_COMM_WORLD);
        // More iterations than the reference took count for nothing, and a tenth of the setup
        // counts in each set.
        const double counted =
            operations(iterations_, rows, nonzeros) * reference_iterations / iterations_;
        const double timed = std::accumulate(times_.begin(), times_.end(), 0.0);
        const double sets = static_cast<double>(sets_);
        const Asked& a = asked_;
        const std::string where = Object()
                                      .add("nx", a.points[0])
                                      .add("ny", a.points[1])
                                      .add("nz", a.points[2])
                                      .add("ranks", session_.ranks)
                                      .text();
        Series rating = session_.series(where, 1), seconds = rating;
        rating.samples = {1e-9 * counted * sets / (timed + sets * setup_s_ / 10)};
        const std::string work = Object()
                                     .add("rating", timed < official_s ? "short" : "official")
                                     .add("iterations", iterations_)
                                     .text();
        rating.more = Object()
                          .raw("work", work)
                          .add("operations", counted)
                          .add("setup_s", setup_s_)
                          .add("residuals", history_)
                          .text();
        seconds.metric = "time";
        seconds.unit = "s";
        seconds.samples = times_;
        seconds.more =
            Object().add("in_mpi", shares(session_, 1e-9 * multigrid_->in_mpi.ns(), timed)).text();
        session_.keep(std::move(rating));
        session_.keep(std::move(seconds));
    }

    Session& session_;
    const Asked& asked_;
    std::unique_ptr<Multigrid> multigrid_;
    std::unique_ptr<Solver> solver_;
    Vector b_, x_;
    double setup_s_ = 0;
    int iterations_ = 0;
    long sets_ = 0;
    std::vector<double> times_, residuals_, history_;
};

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "conjugate_gradient";
    spec.summary = "Conjugate gradients with a multigrid preconditioner, by the rules of HPCG.";
    spec.metric = "gflops";
    spec.unit = "Gflop/s";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.intervals = true;
    spec.paced = false;
    spec.options = options;
    spec.need = need;
    Session session(spec);
    session.start(argc, argv);
    const Asked asked = asked_of(session);
    Benchmark(session, asked).measure();
    return session.finish();
}
