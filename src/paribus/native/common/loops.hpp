// The loops of STREAM over three arrays of each rank, all ranks at once: the memory's bandwidth.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "caches.hpp"
#include "sampling.hpp"

// At -O2 GCC takes one number at a time here, with which one core does not reach the memory's
// bandwidth. Chosen where the program runs: hosts with other processors may share its file. A copy
// must not become memcpy, which writes past the caches: the other loops do not.
#if defined(__clang__)
#define PARIBUS_LOOP __attribute__((no_builtin("memcpy")))
#elif defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__)
#define PARIBUS_LOOP PARIBUS_OPTIMIZED __attribute__((target_clones("default", "fma", "avx512f")))
#else
#define PARIBUS_LOOP PARIBUS_OPTIMIZED
#endif
// A sum may be taken in any order: of whole numbers every order gives the same.
#define PARIBUS_OPTIMIZED                                                         \
    __attribute__((optimize("tree-vectorize", "no-tree-loop-distribute-patterns", \
                            "associative-math", "no-signed-zeros", "no-trapping-math")))

namespace paribus::loops {

constexpr double scalar = 3;

PARIBUS_LOOP static void copy(double* __restrict c, const double* __restrict a, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) c[i] = a[i];
}
PARIBUS_LOOP static void scale(double* __restrict b, const double* __restrict c, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) b[i] = scalar * c[i];
}
PARIBUS_LOOP static void add(double* __restrict c, const double* __restrict a,
                             const double* __restrict b, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
PARIBUS_LOOP static void triad(double* __restrict a, const double* __restrict b,
                               const double* __restrict c, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + scalar * c[i];
}
PARIBUS_LOOP static double dot(const double* __restrict a, const double* __restrict b,
                               std::size_t n) {
#if defined(__clang__)
#pragma clang fp reassociate(on)
#endif
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// What lies at place `i` of a rank's arrays: small whole numbers, so that every sum is exact.
struct Place {
    explicit Place(std::size_t i)
        : a(static_cast<double>(i % 251)),
          b(static_cast<double>(i % 241)),
          c(static_cast<double>(i % 239)) {}
    double a, b, c;
};

struct Arrays {
    explicit Arrays(std::size_t bytes)
        : n(bytes / sizeof(double)), a_(bytes), b_(bytes), c_(bytes) {
        if (!whole()) return;
        for (std::size_t i = 0; i < n; ++i) {
            const Place at(i);
            a()[i] = at.a;
            b()[i] = at.b;
            c()[i] = at.c;
        }
    }
    bool whole() const { return a_.data && b_.data && c_.data; }
    double* a() const { return reinterpret_cast<double*>(a_.data); }
    double* b() const { return reinterpret_cast<double*>(b_.data); }
    double* c() const { return reinterpret_cast<double*>(c_.data); }

    const std::size_t n;
    double sum = 0;

private:
    Buffer a_, b_, c_;  // each rank touches its own first
};

// A loop: its name, how many arrays it reads or writes, what it does to all places and to one, and
// the array that it writes.
struct Loop {
    const char* name;
    int arrays;
    void (*pass)(Arrays&);
    void (*step)(Place&);
    double* (*written)(const Arrays&);
};

inline const Loop known[] = {
    {"copy", 2, [](Arrays& x) { copy(x.c(), x.a(), x.n); }, [](Place& at) { at.c = at.a; },
     [](const Arrays& x) { return x.c(); }},
    {"scale", 2, [](Arrays& x) { scale(x.b(), x.c(), x.n); },
     [](Place& at) { at.b = scalar * at.c; }, [](const Arrays& x) { return x.b(); }},
    {"add", 3, [](Arrays& x) { add(x.c(), x.a(), x.b(), x.n); },
     [](Place& at) { at.c = at.a + at.b; }, [](const Arrays& x) { return x.c(); }},
    {"triad", 3, [](Arrays& x) { triad(x.a(), x.b(), x.c(), x.n); },
     [](Place& at) { at.a = at.b + scalar * at.c; }, [](const Arrays& x) { return x.a(); }},
    {"dot", 2, [](Arrays& x) { x.sum = dot(x.a(), x.b(), x.n); }, [](Place&) {},
     [](const Arrays& x) { return x.a(); }},
};

// The loop of that name, or all of them.
inline std::vector<const Loop*> chosen(const std::string& name = "") {
    std::vector<const Loop*> found;
    for (const Loop& loop : known)
        if (name.empty() || name == loop.name) found.push_back(&loop);
    return found;
}

// The first place at which the arrays are not as the loops `done` leave them, or -1; their number
// where only the sum is wrong.
inline long first_wrong(const Arrays& x, const std::vector<const Loop*>& done) {
    double sum = 0;
    for (std::size_t i = 0; i < x.n; ++i) {
        Place at(i);
        for (const Loop* loop : done) loop->step(at);
        if (x.a()[i] != at.a || x.b()[i] != at.b || x.c()[i] != at.c) return static_cast<long>(i);
        sum += at.a * at.b;
    }
    const bool summed = std::string(done.back()->name) == "dot";
    return summed && x.sum != sum ? static_cast<long>(x.n) : -1;
}

// Keeps a series of each of `loops`, which follow each other on the same arrays. A case names its
// loop where there are several, and the bytes where they were asked for. Collective.
inline void measure(Session& session, long bytes, const std::vector<const Loop*>& loops) {
    const bool asked = !session.arguments.bytes.empty();
    Arrays arrays(static_cast<std::size_t>(bytes));
    session.give_up_if(arrays.whole() ? "" : "no memory left for " + session.case_text(bytes));
    std::vector<const Loop*> done;
    for (const Loop* loop : loops) {
        Object text;
        if (loops.size() > 1) text.add("op", loop->name);
        if (asked) text.add("bytes", bytes);
        const std::string where = text.text();
        const auto passes = [&](long count) {
            for (long i = 0; i < count; ++i) {
                loop->pass(arrays);
                asm volatile("" : : "r"(&arrays) : "memory");  // every pass must be carried out
                session.delay();
            }
        };
        Series series = sample_together(session, passes, true, where);
        done.push_back(loop);
        session.corrupt(reinterpret_cast<unsigned char*>(loop->written(arrays)),
                        static_cast<std::size_t>(bytes));
        session.verify(where, first_wrong(arrays, done), arrays.n);
        // What a cache reads in order to write is not counted.
        for (double& ns : series.samples)
            ns = static_cast<double>(bytes) * loop->arrays * session.ranks / ns;
        const std::string work = Object().add("array_bytes", bytes).text();
        if (!asked) series.more = Object().raw("work", work).text();
        session.keep(std::move(series));
    }
}

inline Spec spec(const char* name, const char* summary) {
    Spec spec;
    spec.name = name;
    spec.summary = summary;
    spec.metric = "bandwidth";
    spec.unit = "GB/s";
    spec.least_size = sizeof(double);
    spec.element_size = sizeof(double);
    spec.buffers = 3;
    spec.least_warmup = 1;
    spec.likes = false;
    return spec;
}

}  // namespace paribus::loops
