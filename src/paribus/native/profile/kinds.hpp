// What kind of time a call takes: its class and its size, from its arguments. Those of C have
// types, those of Fortran are all addresses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "timing.hpp"

namespace {

// As SMALL and LARGE of judge/profiles.py, where their reason is given.
constexpr long small_most = 1 << 10, large_least = 1 << 16;

std::atomic<uint64_t> requests[1 << 14];
uint64_t null_request, null_request_f;

// For the trace: how many calls it has, which of them made each request, and those that made the
// requests of a call that waits for them (-1: not known, or none).
constexpr int most_asked = 4096;
int64_t events, made[1 << 14], asked[most_asked];
int asks;
bool asks_lost;

inline int number(int n) { return n; }
inline int number(const void* n) { return *static_cast<const MPI_Fint*>(n); }
inline MPI_Comm comm_of(MPI_Comm comm) { return comm; }
inline MPI_Comm comm_of(void* comm) { return MPI_Comm_f2c(number(comm)); }
inline MPI_Datatype type_of(MPI_Datatype type) { return type; }
inline MPI_Datatype type_of(void* type) { return MPI_Type_f2c(number(type)); }
inline const int* list(const int* n) { return n; }
inline const int* list(const void* n) { return static_cast<const int*>(n); }

__attribute__((noinline)) int size_of(MPI_Datatype type, Type& known) {
    int size = 0, integers, addresses, types, combiner;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) known = {type, size};
    return size;
}

template <typename N, typename T>
FAST long sized(N n, T type) {
    long count = number(n);
    if (count <= 0) return 0;
    MPI_Datatype of = type_of(type);
    Type& known = mine->types[(uint64_t)(uintptr_t)of * 0x9E3779B97F4A7C15u >> 60];
    return count * (known.type == of && known.size ? known.size : size_of(of, known));
}

FAST Kind by_size(int smallest, long bytes) {
    return {smallest + (bytes > small_most) + (bytes >= large_least), bytes};
}

template <typename N, typename T>
FAST Kind message(N n, T type) {
    return by_size(messages, sized(n, type));
}

// What a collective sends to each rank, or each rank to all: the size by which benchmarks name it.
template <typename N, typename T>
Kind collective(N n, T type) {
    return by_size(collectives, sized(n, type));
}

template <typename C>
int peers(C comm) {
    int between = 0, n = 1;
    PMPI_Comm_test_inter(comm_of(comm), &between);
    between ? PMPI_Comm_remote_size(comm_of(comm), &n) : PMPI_Comm_size(comm_of(comm), &n);
    return n;
}

template <typename C, typename R>
bool is_root(R root, C comm) {
    int me = -1;
    PMPI_Comm_rank(comm_of(comm), &me);
    return number(root) == me;
}

// Of sizes that differ between ranks, the mean.
template <typename N, typename T, typename C>
Kind collective_v(N counts, T type, C comm) {
    int n = peers(comm), each = 0;
    long sum = 0;
    for (int i = 0; i < n; i++) sum += list(counts)[i];
    if (sum) each = int(sized(1, type));
    return by_size(collectives, n ? sum * each / n : 0);
}

// The handles of MPICH are the same numbers in both languages, those of Open MPI are addresses in
// C.
inline uint64_t key(const MPI_Request* r) {
    uint64_t handle = (uint64_t)(uintptr_t)*r;
    return sizeof *r == sizeof(MPI_Fint) ? uint32_t(handle) : handle;
}
inline uint64_t key(const void* r) { return (uint32_t)number(r); }
inline uint64_t null_of(const MPI_Request*) { return null_request; }
inline uint64_t null_of(const void*) { return null_request_f; }
inline size_t slot(uint64_t key) { return (key * 0x9E3779B97F4A7C15u) >> 50; }

// The class of a request is kept until its handle comes again: the latest one of a slot.
template <typename R>
void remember(Kind kind, const R* request) {
    uint64_t k = key(request);
    requests[slot(k)].store(k << 4 | uint64_t(kind.of), std::memory_order_relaxed);
    if (mine->traced) made[slot(k)] = events;
}

// Sets `asked` to the calls that made some requests.
template <typename R>
void ask(int n, const R* first, size_t stride) {
    asks_lost |= n > most_asked;
    asks = n < most_asked ? n : most_asked;
    for (int i = 0; i < asks; i++) {
        auto* request =
            reinterpret_cast<const R*>(reinterpret_cast<const char*>(first) + i * stride);
        uint64_t k = key(request), entry = requests[slot(k)].load(std::memory_order_relaxed);
        if (k == null_of(request)) asked[i] = -1;
        else if (entry >> 4 == k) asked[i] = made[slot(k)];
        else asked[i] = -1, asks_lost = true;
    }
}

// A wait counts with the class of its requests, if they are of one.
template <typename R>
Kind waited(int n, const R* first, size_t stride) {
    int of = -1;
    if (mine->traced) ask<R>(n, first, stride);
    for (int i = 0; i < n; i++) {
        auto* request =
            reinterpret_cast<const R*>(reinterpret_cast<const char*>(first) + i * stride);
        uint64_t k = key(request);
        if (k == null_of(request)) continue;
        uint64_t entry = requests[slot(k)].load(std::memory_order_relaxed);
        int found = entry >> 4 == k ? int(entry & 15) : int(waiting);
        if (of >= 0 && of != found) return {waiting, 0};
        of = found;
    }
    return {of < 0 ? int(waiting) : of, 0};
}
inline Kind waits(int n, const MPI_Request* r) { return waited(n, r, sizeof(MPI_Request)); }
inline Kind waits(int n, const void* r) { return waited(n, r, sizeof(MPI_Fint)); }
inline Kind waits(const void* n, const void* r) { return waits(number(n), r); }

}  // namespace
