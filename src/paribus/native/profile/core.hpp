// Whether a rank had its core while it computed: what another thread took of it is no computation
// of the program. Replayed, it would be met twice, for replays lose their core as programs do.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace {

// Whoever takes a core keeps it for a slice of the scheduler, 1 ms and more: what is shorter than
// this is not looked at, so that looking, at 0.8 us before and behind, costs about 0.5 %.
constexpr double look_s = 3e-4;

struct Core {
    double ticks_per_s;
    uint64_t brief;  // ticks of computing, or of a call, that are not looked at
    uint64_t freed;  // when the thread came back from its last call
    uint64_t lost;   // ticks since then in which another thread had the core
    uint64_t since;  // when it was looked at last, and what the thread had had of a core by then
    double ran;
    long slept;

    // Looks at `at`; returns for how many of the last `span` ticks another thread had the core. A
    // thread that has slept meanwhile, as for a file, gave it up itself: that is the program's
    // time. The thread's clock is asked, not getrusage(2), whose times of a running thread are
    // those of the last tick of the kernel, 1 to 10 ms old.
    __attribute__((noinline)) uint64_t look(uint64_t at, uint64_t span) {
        timespec on;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &on);
        rusage used;
        getrusage(RUSAGE_THREAD, &used);
        const double now_ran = ticks_per_s * (double(on.tv_sec) + 1e-9 * double(on.tv_nsec));
        const double missing = double(at - since) - (now_ran - ran);
        const bool taken = since && used.ru_nvcsw == slept && missing > 0;
        since = at;
        ran = now_ran;
        slept = used.ru_nvcsw;
        return taken ? std::min(span, uint64_t(missing)) : 0;
    }
    void begins(uint64_t at) {
        if (at - freed > brief) lost = look(at, at - freed);
    }
    void ends(uint64_t began, uint64_t at) {
        if (at - began > brief) look(at, 0);
    }
    // The ticks that the thread computed before a call that began at `at`.
    uint64_t computed(uint64_t at) {
        const uint64_t own = at - freed - lost;
        lost = 0;
        return own;
    }
} core;

}  // namespace
