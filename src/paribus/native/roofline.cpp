// Roofline: operations per second by how many there are for each byte of memory (Williams, Waterman
// and Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009).
#include <array>
#include <cstdint>

#include "common/caches.hpp"
#include "common/sampling.hpp"

using namespace paribus;

namespace {

// What a pass does to each pair (x, y) before it writes y where x was and x where y was: so many
// operations, an addition counts as one, and a multiplication with an addition as two. 1: x + one.
// 2: both. 4: x factor + one, both. From 8 on: with `one` and `two` in turns.
template <class T>
struct Work {
    long operations;
    T factor, one, two;
};

constexpr std::size_t group = 6;  // vectors of each half at once: two additions finish in a cycle

#if defined(__clang__)
#define PARIBUS_UNROLL
#else
#define PARIBUS_UNROLL _Pragma("GCC unroll 8")
#endif

namespace narrow {
#define PARIBUS_WIDTH 16
#define PARIBUS_TARGET __attribute__((noinline))
#include "roofline/pass.hpp"
#undef PARIBUS_WIDTH
#undef PARIBUS_TARGET
}  // namespace narrow

#if defined(__x86_64__)
namespace avx2 {
#define PARIBUS_WIDTH 32
#define PARIBUS_TARGET __attribute__((noinline, target("avx2,fma")))
#include "roofline/pass.hpp"
#undef PARIBUS_WIDTH
#undef PARIBUS_TARGET
}  // namespace avx2

namespace avx512 {
#define PARIBUS_WIDTH 64
#define PARIBUS_TARGET __attribute__((noinline, target("avx512f")))
#include "roofline/pass.hpp"
#undef PARIBUS_WIDTH
#undef PARIBUS_TARGET
}  // namespace avx512
#endif

template <class T>
using Pass = void (*)(T*, T*, std::size_t, const Work<T>&);

template <class T>
struct Width {
    long bits;
    Pass<T> pass;
};

// Those that the processor has.
template <class T>
std::vector<Width<T>> widths() {
    std::vector<Width<T>> found{{128, narrow::pass<T>}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found.push_back({256, avx2::pass<T>});
    if (__builtin_cpu_supports("avx512f")) found.push_back({512, avx512::pass<T>});
#endif
    return found;
}

constexpr long most_operations_of_byte = 64, least_bytes_of_operation = 16;
constexpr std::size_t whole_groups = group * 64;   // bytes: of any width
constexpr std::size_t part = 5461 * whole_groups;  // bytes of each half in one operation: 2 MiB

// A rank's numbers of one type: two halves, of which an operation takes a part each. What lies
// there can be told for every part from how often it was passed over.
template <class T>
class Numbers {
public:
    Numbers(Session& session, Buffer& memory, std::size_t bytes)
        : session_(session), memory_(memory) {
        const std::size_t half = bytes / 2 / whole_groups * whole_groups;
        const std::size_t each = std::min(half, part);
        n_ = each / sizeof(T);
        parts_.resize(half / each);
        first_ = reinterpret_cast<T*>(memory.data);
        second_ = first_ + n_ * parts_.size();
        for (std::size_t i = 0; i < n_ * parts_.size(); ++i) {
            first_[i] = start(i, 0);
            second_[i] = start(i, 1);
        }
        choose_width();
    }

    long bits() const { return width_.bits; }
    std::size_t pairs() const { return n_; }  // of an operation

    // Of each pair so many operations; from now on.
    void set(long operations) {
        // Unknown to the compiler, or it would not compute.
        volatile T minus_one = -1, zero = 0, one = 1;
        // Two passes lead away, the next two back: the numbers stay small and exact.
        away_ = {operations, minus_one, zero, one};
        back_ = {operations, minus_one, one, zero};
        if (operations < 8) {
            away_.one = one;
            back_.one = operations == 4 ? one : minus_one;
        }
        done_ = 0;
    }
    void operate() {
        const auto at = static_cast<std::size_t>(done_) % parts_.size();
        const auto round = static_cast<std::size_t>(done_++) / parts_.size();
        width_.pass(first_ + at * n_, second_ + at * n_, n_, round / 2 % 2 == 0 ? away_ : back_);
    }
    // Follows in `parts_` what the operations since set() did.
    void follow() {
        for (std::size_t at = 0; at < parts_.size(); ++at) {
            const std::size_t rounds =
                (static_cast<std::size_t>(done_) + parts_.size() - 1 - at) / parts_.size();
            for (std::size_t round = 0; round < rounds % 4; ++round)
                parts_[at].pass(round < 2 ? away_ : back_);
        }
    }

    // The first number that is wrong, or -1; it may not be in use any more.
    long first_wrong() {
        session_.corrupt(memory_.data, n_ * sizeof(T));
        for (std::size_t i = 0; i < n_ * parts_.size(); ++i) {
            const State& state = parts_[i / n_];
            if (first_[i] != state.of(0, i) || second_[i] != state.of(1, i))
                return static_cast<long>(i);
        }
        return -1;
    }
    std::size_t checked() const { return 2 * n_ * parts_.size(); }

private:
    static T start(std::size_t i, int half) { return static_cast<T>(i % (half == 0 ? 7 : 11)); }

    // Of a part: each half holds the numbers that `from` began with, times `sign` plus `shift`.
    struct State {
        std::array<int, 2> from{0, 1};
        std::array<T, 2> sign{1, 1}, shift{0, 0};

        T of(std::size_t half, std::size_t i) const {
            return sign[half] * start(i, from[half]) + shift[half];
        }
        void pass(const Work<T>& work) {
            for (std::size_t half = 0; half < 2; ++half) {
                if (work.operations == 4) {
                    sign[half] = -sign[half];
                    shift[half] = work.one - shift[half];
                } else if (work.operations >= 8) {
                    shift[half] += static_cast<T>(work.operations / 8) * (work.two - work.one);
                } else if (half == 0 || work.operations == 2) {
                    shift[half] += work.one;
                }
            }
            std::swap(from[0], from[1]);
            std::swap(sign[0], sign[1]);
            std::swap(shift[0], shift[1]);
        }
    };

    // The fastest where the processor computes most: wider vectors may lower its clock, and count
    // as faster from 5 % on, so that launches agree. All ranks take rank 0's choice.
    void choose_width() {
        const auto known = widths<T>();
        const std::size_t few = std::min(n_, 16 * whole_groups / sizeof(T));
        double best = 1e300;
        int chosen = 0;
        set(4 * static_cast<long>(sizeof(T)) * most_operations_of_byte);
        for (std::size_t k = 0; k < known.size(); ++k) {
            double least = 1e300;
            for (int trial = 0; trial < 32; ++trial) {  // of four, two lead away and two back
                const std::int64_t began = now_ns();
                known[k].pass(first_, second_, few, trial / 2 % 2 == 0 ? away_ : back_);
                least = std::min(least, static_cast<double>(now_ns() - began));
            }
            if (least > 0.95 * best) continue;
            best = least;
            chosen = static_cast<int>(k);
        }
        MPI_Bcast(&chosen, 1, MPI_INT, 0, MPI_COMM_WORLD);
        width_ = known[std::min(static_cast<std::size_t>(chosen), known.size() - 1)];
    }

    Session& session_;
    Buffer& memory_;
    std::size_t n_ = 0;  // of each half in one part
    T *first_ = nullptr, *second_ = nullptr;
    std::vector<State> parts_;
    Width<T> width_{};
    Work<T> away_{}, back_{};
    long done_ = 0;  // operations since set()
};

template <class T>
void measure(Session& session, Buffer& memory, std::size_t bytes, const char* type) {
    Numbers<T> numbers(session, memory, bytes);
    const auto operation = [&](long count) {
        for (long i = 0; i < count; ++i) {
            numbers.operate();
            session.delay();
        }
    };
    const std::string width = std::string("vector_bits.") + type;
    const std::string more = Object()
                                 .raw("work", Object()
                                                  .add("array_bytes", static_cast<long>(bytes))
                                                  .add(width.c_str(), numbers.bits())
                                                  .text())
                                 .text();
    // A pair is read and written: four numbers. Intensities double from 1/16 to 64.
    constexpr long moved = 4 * static_cast<long>(sizeof(T));
    for (long n = moved / least_bytes_of_operation; n <= moved * most_operations_of_byte; n *= 2) {
        const double intensity = static_cast<double>(n) / moved;
        const std::string where = Object().add("type", type).add("intensity", intensity).text();
        numbers.set(n);
        Series series = sample_together(session, operation, true, where);
        numbers.follow();
        for (double& ns : series.samples)
            ns = static_cast<double>(n) * static_cast<double>(numbers.pairs()) * session.ranks / ns;
        series.more = more;
        session.keep(std::move(series));
    }
    session.verify(Object().add("type", type).text(), numbers.first_wrong(), numbers.checked());
}

constexpr Option options[] = {
    {"array", "0", "bytes of a rank's numbers; 0: four times the last-level caches", 0, 1L << 40},
    {}};

Need need_of_array(long bytes) {
    return {static_cast<double>(bytes), "arrays of " + std::to_string(bytes) + " bytes do"};
}

Need need(const Arguments& asked, int) { return need_of_array(asked.numbers.at("array").front()); }

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "roofline";
    spec.summary = "Operations per second by operations per byte of memory, all ranks at once.";
    spec.metric = "performance";
    spec.unit = "Gop/s";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.options = options;
    spec.need = need;
    spec.samples = 20;
    spec.least_samples = 3;
    spec.least_warmup = 1;
    Session session(spec);
    session.start(argc, argv);
    long bytes = session.arguments.numbers.at("array").front();
    if (bytes == 0) {
        bytes = array_beyond_caches(session);
        const Need found = need_of_array(bytes);
        session.refuse_larger(found.bytes, found.what);
    }
    if (bytes < static_cast<long>(2 * whole_groups))
        session.refuse("--array: the least is " + std::to_string(2 * whole_groups));
    Buffer memory(static_cast<std::size_t>(bytes));
    session.give_up_if(memory.data ? "" : "no memory left");
    measure<double>(session, memory, static_cast<std::size_t>(bytes), "double");
    measure<float>(session, memory, static_cast<std::size_t>(bytes), "float");
    measure<std::int32_t>(session, memory, static_cast<std::size_t>(bytes), "int");
    return session.finish();
}
