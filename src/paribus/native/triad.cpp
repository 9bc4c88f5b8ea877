// Triad: memory bandwidth of all ranks at once, a[i] = b[i] + s * c[i] on arrays of their own.
#include "common/sampling.hpp"

using namespace paribus;

namespace {

constexpr double scale = 3;
double first_term(std::size_t i) { return static_cast<double>(i % 1024); }
double second_term(std::size_t i) { return static_cast<double>(i % 509); }

// At -O2 GCC takes one number at a time here, with which one core does not reach the memory's
// bandwidth. Chosen where the program runs: hosts with other processors may share its file.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
__attribute__((optimize("tree-vectorize"), target_clones("default", "avx2")))
#endif
void triad(double* __restrict a, const double* __restrict b, const double* __restrict c,
           std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + scale * c[i];
}

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "triad";
    spec.summary = "Memory bandwidth of a[i] = b[i] + s * c[i], all ranks at once.";
    spec.metric = "bandwidth";
    spec.unit = "GB/s";
    spec.sizes = "67108864";
    spec.least_size = sizeof(double);
    spec.element_size = sizeof(double);
    spec.buffers = 3;
    spec.likes = false;
    Session session(spec);
    session.start(argc, argv);
    for (const long bytes : session.arguments.bytes) {
        const std::string where = session.case_text(bytes);
        const auto size = static_cast<std::size_t>(bytes);
        const std::size_t n = size / sizeof(double);
        Buffer a(size), b(size), c(size);
        session.give_up_if(a.data && b.data && c.data ? "" : "no memory left at " + where);
        auto* const sum = reinterpret_cast<double*>(a.data);
        auto* const first = reinterpret_cast<double*>(b.data);
        auto* const second = reinterpret_cast<double*>(c.data);
        for (std::size_t i = 0; i < n; ++i) {
            first[i] = first_term(i);
            second[i] = second_term(i);
        }
        const auto passes = [&](long count) {
            for (long i = 0; i < count; ++i) {
                triad(sum, first, second, n);
                asm volatile("" : : "r"(sum) : "memory");  // every pass must be carried out
                session.delay();
            }
        };
        Series series = sample_together(session, passes, true, where);
        session.corrupt(a.data, size);
        long wrong = -1;
        for (std::size_t i = 0; i < n && wrong < 0; ++i)
            if (sum[i] != first_term(i) + scale * second_term(i)) wrong = static_cast<long>(i);
        session.verify(where, wrong, n);
        // Two loads and a store of 8 bytes; what a cache reads in order to write is not counted.
        for (double& ns : series.samples)
            ns = 3.0 * static_cast<double>(bytes) * session.ranks / ns;
        session.keep(std::move(series));
    }
    return session.finish();
}
