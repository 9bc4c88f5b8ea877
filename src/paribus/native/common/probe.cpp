#include "probe.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "clock.hpp"
#include "json.hpp"
#include "machine.hpp"

namespace paribus {

namespace {

// One cache line that two threads write in turn. The end has a word of its own: a late answer may
// overwrite `turn` at any time.
struct alignas(128) Line {
    std::atomic<long> turn{0};
    std::atomic<bool> over{false};
};

struct Partner {
    Line* line;
    int core;
    std::atomic<int> state{0};  // 0 starting, 1 on its core, 2 not allowed there
};

void* answer(void* data) {
    auto& partner = *static_cast<Partner*>(data);
    if (!stay_on({partner.core})) {
        partner.state = 2;
        return nullptr;
    }
    partner.state = 1;
    for (long expected = 1;; expected += 2) {
        while (partner.line->turn.load(std::memory_order_acquire) != expected)
            if (partner.line->over.load(std::memory_order_relaxed)) return nullptr;
        partner.line->turn.store(expected + 1, std::memory_order_release);
    }
}

double core_to_core(const std::vector<int>& candidates) {
    const std::vector<int> before = allowed_cores();
    const int here = sched_getcpu();
    double best = NAN;
    for (const int core : candidates) {
        if (core == here || core < 0) continue;
        Line line;
        Partner partner{&line, core};
        pthread_t thread;
        if (!stay_on({here})) break;
        if (pthread_create(&thread, nullptr, answer, &partner) != 0) break;
        // The other core may be held by someone else's work: never wait longer than this.
        const std::int64_t deadline = now_ns() + 8000000;
        while (partner.state == 0 && now_ns() < deadline) sched_yield();
        long turn = 1;
        for (int batch = 0; partner.state == 1 && batch < 6; ++batch) {
            constexpr int trips = 500;
            bool late = false;
            const std::int64_t start = now_ns();
            for (int i = 0; i < trips && !late; ++i, turn += 2) {
                line.turn.store(turn, std::memory_order_release);
                for (long spins = 1; line.turn.load(std::memory_order_acquire) != turn + 1; ++spins)
                    if (spins % 1024 == 0 && now_ns() > deadline) {
                        late = true;
                        break;
                    }
            }
            if (late) break;
            const double one_way = static_cast<double>(now_ns() - start) / (2.0 * trips);
            best = std::isnan(best) ? one_way : std::min(best, one_way);
        }
        line.over = true;
        pthread_join(thread, nullptr);
        if (partner.state == 1) break;
    }
    stay_on(before);
    return best;
}

// Memory of the kernel itself: what an arm tells malloc, such as to use huge pages, is not the
// state of the machine.
struct Mapping {
    explicit Mapping(std::size_t numbers) : bytes(numbers * sizeof(double)) {
        void* const found =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        data = found == MAP_FAILED ? nullptr : static_cast<double*>(found);
    }
    ~Mapping() {
        if (data != nullptr) munmap(data, bytes);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    const std::size_t bytes;
    double* data = nullptr;
};

double triad_gbps() {
    constexpr auto n = static_cast<std::size_t>(triad_bytes) / (3 * sizeof(double));
    const Mapping first(n), second(n), third(n);
    double* const a = first.data;
    double* const b = second.data;
    double* const c = third.data;
    if (a == nullptr || b == nullptr || c == nullptr) return NAN;
    for (std::size_t i = 0; i < n; ++i) {
        a[i] = 0;
        b[i] = static_cast<double>(i);
        c[i] = 1;
    }
    double best_ns = 1e18;
    for (int pass = 0; pass < 5; ++pass) {
        const double scale = pass + 0.5;
        const std::int64_t start = now_ns();
        for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + scale * c[i];
        asm volatile("" : : "r"(a) : "memory");
        best_ns = std::min(best_ns, static_cast<double>(now_ns() - start));
    }
    return 24.0 * n / best_ns;
}

double clock_ghz() {
    // Adding a register, not a constant: newer cores carry out the latter while renaming.
    unsigned long x = 1, step = 3;
    asm volatile("" : "+r"(step));
    constexpr int rounds = 4000, each = 50;
    double best_ns = 1e18;
    for (int repeat = 0; repeat < 5; ++repeat) {
        const std::int64_t start = now_ns();
        for (int i = 0; i < rounds; ++i) {
            // clang-format off
#define PARIBUS_ADD x += step; asm volatile("" : "+r"(x));
#define PARIBUS_TEN PARIBUS_ADD PARIBUS_ADD PARIBUS_ADD PARIBUS_ADD PARIBUS_ADD \
                    PARIBUS_ADD PARIBUS_ADD PARIBUS_ADD PARIBUS_ADD PARIBUS_ADD
            PARIBUS_TEN PARIBUS_TEN PARIBUS_TEN PARIBUS_TEN PARIBUS_TEN
#undef PARIBUS_TEN
#undef PARIBUS_ADD
            // clang-format on
        }
        best_ns = std::min(best_ns, static_cast<double>(now_ns() - start));
    }
    return rounds * each / best_ns;
}

}  // namespace

std::string State::text() const {
    Object out;
    out.add("core_to_core_ns", core_to_core_ns).add("triad_gbps", triad_gbps);
    return out.add("clock_ghz", clock_ghz).text();
}

State probe_state(const std::vector<int>& others, bool memory) {
    State state;
    std::vector<int> candidates = others;
    for (const int core : allowed_cores()) candidates.push_back(core);
    state.clock_ghz = clock_ghz();
    state.core_to_core_ns = core_to_core(candidates);
    if (memory) state.triad_gbps = triad_gbps();
    return state;
}

}  // namespace paribus
