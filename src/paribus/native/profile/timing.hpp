// How a call is counted and timed.
//
// Every call is counted, and timed too where that takes less than 1 % of the time. Where it takes
// more, the calls of one name and class that are short are timed by a draw: one of each 32, which
// counts 32 times. What decides whether a call is drawn is known before it, so the sum of times is
// unbiased (D. G. Horvitz & D. J. Thompson, J. Am. Stat. Assoc. 47, 1952). One long wait among very
// many short calls would be missed 31 times of 32, and counted 32 times else. So a thread of the
// profiler reads the clock every 20 ms: a call during which it did so twice counts for itself.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "core.hpp"
#include "weak.hpp"

#define FAST __attribute__((always_inline)) inline  // on the way of every call

namespace {

enum Class { messages, messages_middle, messages_large, collectives, collectives_middle };
constexpr int collectives_large = 5, one_sided = 6, storage = 7, waiting = 8, other = 9,
              classes = 10;
constexpr const char* class_names[] = {"messages_small",
                                       "messages_middle",
                                       "messages_large",
                                       "collectives_small",
                                       "collectives_middle",
                                       "collectives_large",
                                       "one_sided",
                                       "storage",
                                       "waiting",
                                       "other"};

struct Kind {
    int of;
    long bytes;
};

constexpr unsigned one_of = 32;     // calls of which one is timed where not all are
constexpr double affordable = 100;  // so many times what timing costs: then it takes 1 %
constexpr unsigned window = 64;     // calls after which it is seen how dense they are
constexpr double tick_s = 0.02;     // every 2 ms it cost programs 3 to 6 % here

// What is known of the calls of one name and class. `ticks` is estimated; `variance` is the square
// of its standard error, from the differences between one draw and the next (strata in pairs: W. G.
// Cochran, Sampling Techniques, 1977, section 5A.12).
struct alignas(64) Count {
    uint64_t calls, bytes, timed;
    double ticks, variance;
    float drawn, usual;  // ticks of the last one that was drawn; of what is usual now
    unsigned late;       // long calls that were not timed: in `ticks` from `seen` on
    unsigned skip;       // so many calls until the next one that is timed
    unsigned left;       // calls of its 32 from it on; 0: it is timed without a draw
};

// A type that MPI itself has keeps its size, and its handle its meaning.
struct Type {
    MPI_Datatype type;
    int size;
};
constexpr unsigned type_places = 16;

constexpr int most_calls = 128;
const char* names[most_calls];

struct Thread {
    Count counts[most_calls][classes];
    Type types[type_places];
    Thread* next;
    uint64_t state, calls, then_calls, then_ticks;  // then: when the window began
    bool inside, dense;
    bool traced;  // the order of its calls is kept
};

std::atomic<Thread*> threads;
std::atomic<bool> running, ticking;
std::atomic<uint64_t> tick, tick_before;  // when the clock was read last, and before that
__thread Thread* mine __attribute__((tls_model("initial-exec")));
double timing_ticks, counting_ticks;  // what it takes to time a call, and only to count it
int rank;
bool steady;  // the processor's own counter can serve as a clock

inline uint64_t now() {
#if defined(__x86_64__)
    if (steady) return __rdtsc();
#endif
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return uint64_t(at.tv_sec) * 1000000000 + uint64_t(at.tv_nsec);
}

bool counter_is_steady() {
#if defined(__x86_64__)
    // Invariant TSC: AMD64 Architecture Programmer's Manual volume 3, CPUID 8000_0007h, EDX bit 8.
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1 << 8));
#else
    return false;
#endif
}

// Returns whether calls of this thread count, which is its first one.
__attribute__((noinline)) bool is_new_thread() {
    if (!running.load()) return false;
    void* place = aligned_alloc(alignof(Thread), sizeof(Thread));
    if (!place) abort();
    mine = static_cast<Thread*>(memset(place, 0, sizeof(Thread)));
    mine->state = uint64_t(rank) << 32 ^ uint64_t(uintptr_t(place));
    mine->next = threads.load();
    while (!threads.compare_exchange_weak(mine->next, mine)) {
    }
    return true;
}

// Returns a number from 0 to 31: the highest bits of D. E. Knuth's MMIX generator.
unsigned draw(Thread* thread) {
    thread->state = thread->state * 6364136223846793005u + 1442695040888963407u;
    return unsigned(thread->state >> 59) % one_of;
}

void* keep_ticking(void*) {
    timespec pause{0, long(1e9 * tick_s)};
    while (running.load()) {
        tick_before.store(tick.load());
        tick.store(now());
        nanosleep(&pause, nullptr);
    }
    return nullptr;
}

void start_ticking() {
    if (ticking.exchange(true)) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t helper;
    if (!pthread_create(&helper, nullptr, keep_ticking, nullptr)) pthread_detach(helper);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Whether the clock was read twice since it was so at `seen`.
inline bool is_long(uint64_t seen) { return seen && tick_before.load() > seen; }

// Takes in a call that was not timed, but long: it began within 20 ms of `seen`.
__attribute__((noinline)) void take_long(Count& count, uint64_t seen) {
    if (!is_long(seen)) return;
    count.ticks += double(now() - seen);
    count.late += 1;
}

// Takes in the time of a call, and decides which one is timed next.
__attribute__((noinline)) void take(Count& count, Thread* thread, uint64_t start, uint64_t seen) {
    uint64_t ended = now();
    double ticks = double(ended - start);
    unsigned rest = count.left ? count.left - 1 : 0, weight = 1;
    if (count.left && !is_long(seen)) {
        weight = one_of;
        double apart = ticks - double(count.drawn), first = 2 * ticks * ticks;
        count.variance += one_of * one_of / 2 * (count.drawn > 0 ? apart * apart : first);
        count.drawn = float(ticks);
    }
    count.ticks += ticks * weight;
    count.timed += 1;
    double limit = affordable * timing_ticks;
    if (uint64_t calls = thread->calls - thread->then_calls; calls >= window) {
        thread->dense = double(calls) * limit > double(ended - thread->then_ticks);
        thread->then_calls = thread->calls;
        thread->then_ticks = ended;
    }
    count.usual += float((ticks < 4 * limit ? ticks : 4 * limit) - double(count.usual)) / 16;
    bool brief = ticks < limit && count.usual < limit;
    count.left = thread->dense && brief ? one_of - draw(thread) : 0;
    count.skip = rest + (count.left ? one_of - count.left : 0);
    if (count.left && !ticking.load(std::memory_order_relaxed)) start_ticking();
}

// MPI may call MPI, as the Fortran bindings of MPICH do: only the outermost call counts.
FAST bool counts() { return mine ? !mine->inside : is_new_thread(); }

struct Call {
    int name;
    Kind kind;
    Thread* thread;
    Count& count;
    uint64_t seen, start;   // start 0: it is not timed
    uint64_t began, ended;  // of the trace, else 0
    FAST Call(int name_, Kind kind_)
        : name(name_),
          kind(kind_),
          thread(mine),
          count(thread->counts[name][kind.of]),
          seen(tick.load(std::memory_order_relaxed)),
          start(0),
          began(0),
          ended(0) {
        thread->inside = true;
        thread->calls += 1;
        count.calls += 1;
        count.bytes += uint64_t(kind.bytes);
        if (thread->traced) core.begins(began = now());
        if (count.skip) count.skip -= 1;
        else start = began ? began : now();
    }
    FAST void over() {
        if (began) core.ends(began, ended = now());
        if (start) take(count, thread, start, seen);
        else if (tick.load(std::memory_order_relaxed) != seen) take_long(count, seen);
        thread->inside = false;
    }
};

}  // namespace
