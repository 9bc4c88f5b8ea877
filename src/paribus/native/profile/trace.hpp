// The order of a rank's calls, from which a skeleton of the program is made: which call, with whom,
// how much, when, and what was computed since the call before. Kept in memory until it is full,
// about 64 bytes a call; of the thread that called MPI_Init: of a program of several threads in MPI
// there is no skeleton.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "kinds.hpp"

namespace {

constexpr size_t words_of_all = 1 << 20;  // of all ranks: 8 MiB, some 130,000 calls
constexpr int most_groups = 64, no_peer = -1, any_peer = -2;

// The ranks in MPI_COMM_WORLD of a communicator.
struct Group {
    MPI_Comm comm;
    bool freed;
    int* members;
    int n;
};

struct Trace {
    int64_t* words;
    size_t used, most;
    double opened_s;
    uint64_t opened;
    uint64_t gap;            // what the thread computed before the last call, if that was a poll
    bool polled, full, odd;  // odd: a call has something that no skeleton has
    Group groups[most_groups];
    int seen;
} trace;

void open_trace(int ranks, double ticks_per_s) {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    trace.opened_s = double(at.tv_sec) + 1e-9 * double(at.tv_nsec);
    trace.most = words_of_all / size_t(ranks > 0 ? ranks : 1);
    trace.words = static_cast<int64_t*>(malloc(trace.most * sizeof(int64_t)));
    core.freed = trace.opened = now();
    core.ticks_per_s = ticks_per_s;
    core.brief = uint64_t(ticks_per_s * look_s);
    core.look(core.freed, 0);
    if (mine && trace.words) mine->traced = true;
}

int group_of(MPI_Comm comm) {
    for (int i = 0; i < trace.seen; i++)
        if (trace.groups[i].comm == comm && !trace.groups[i].freed) return i;
    int between = 0, n = 0;
    PMPI_Comm_test_inter(comm, &between);
    PMPI_Comm_size(comm, &n);
    int* ranks = static_cast<int*>(calloc(2 * size_t(n), sizeof(int)));
    if (between || trace.seen == most_groups || !ranks) {
        trace.odd = true;
        return -1;
    }
    for (int i = 0; i < n; i++) ranks[n + i] = i;
    MPI_Group own, world;
    PMPI_Comm_group(comm, &own);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(own, n, ranks + n, world, ranks);
    PMPI_Group_free(&own);
    PMPI_Group_free(&world);
    trace.groups[trace.seen] = {comm, false, ranks, n};
    return trace.seen++;
}
inline int group_of(void* comm) { return group_of(comm_of(comm)); }

void forget(MPI_Comm comm) {
    for (int i = 0; i < trace.seen; i++)
        if (trace.groups[i].comm == comm) trace.groups[i].freed = true;
}
inline Kind freed(const MPI_Comm* comm) { return forget(*comm), Kind{other, 0}; }
inline Kind freed(void* comm) { return forget(comm_of(comm)), Kind{other, 0}; }

// A rank of a communicator as one of MPI_COMM_WORLD.
template <typename P>
int64_t in_world(int group, P peer) {
    if (number(peer) == MPI_ANY_SOURCE) return any_peer;
    if (group < 0 || number(peer) < 0 || number(peer) >= trace.groups[group].n) return no_peer;
    return trace.groups[group].members[number(peer)];
}

// Takes in a call, and what is to be known of it: `head`, then `rest`.
void put(const Call& call, std::initializer_list<int64_t> head, const int64_t* rest = nullptr,
         int n = 0) {
    const size_t words = 4 + head.size() + size_t(n);
    if (trace.used + words > trace.most) {
        trace.full = true;
        mine->traced = false;
        return;
    }
    int64_t* to = trace.words + trace.used;
    *to++ = call.name | int64_t(words - 4) << 8;
    *to++ = int64_t(trace.gap + core.computed(call.began));
    *to++ = int64_t(call.ended - call.began);
    *to++ = int64_t(call.began - trace.opened);
    for (int64_t one : head) *to++ = one;
    for (int i = 0; i < n; i++) *to++ = rest[i];
    trace.used += words;
    trace.gap = 0;
    trace.polled = false;
    events += 1;
    core.freed = now();
}

// A look for what is not there yet: the program waits, so that this is no time outside MPI.
void poll(const Call& call) {
    const uint64_t own = core.computed(call.began);
    if (!trace.polled) trace.gap += own;
    trace.polled = true;
    core.freed = call.ended;
}

inline int place(const int* indices, int i = 0) { return indices[i]; }
inline int place(const void* indices, int i = 0) {  // Fortran counts from 1
    return static_cast<const MPI_Fint*>(indices)[i] - 1;
}

// Requests of which all are over, the one at `index`, or `n` of them at `indices`.
inline void all_over(const Call& call) { put(call, {}, asked, asks); }
template <typename F>
void all_over(const Call& call, F flag) {
    *static_cast<const int*>(flag) ? all_over(call) : poll(call);
}
template <typename I>
void one_over(const Call& call, I index, const void* flag = nullptr) {
    const int at = place(index);
    if (flag && !*static_cast<const int*>(flag)) return poll(call);
    if (at >= 0 && at < asks) put(call, {asked[at]});
}
template <typename I>
void some_over(const Call& call, const void* n, I indices) {
    const int over = *static_cast<const int*>(n);
    if (over <= 0) return poll(call);
    int64_t which[most_asked];
    int found = 0;
    for (int i = 0; i < over && found < most_asked; i++)
        if (const int at = place(indices, i); at >= 0 && at < asks) which[found++] = asked[at];
    put(call, {}, which, found);
}

template <typename P, typename T, typename C>
void to_peer(const Call& call, P peer, T tag, C comm) {
    const int group = group_of(comm);
    put(call, {group, in_world(group, peer), number(tag), call.kind.bytes});
}

template <typename P, typename T, typename C>
void exchange(const Call& call, P to, T sent, P from, T received, C comm) {
    const int group = group_of(comm);
    put(call, {group, in_world(group, to), number(sent), call.kind.bytes, in_world(group, from),
               number(received)});
}

template <typename C>
void together(const Call& call, C comm) {
    put(call, {group_of(comm), call.kind.bytes, no_peer});
}
template <typename R, typename C>
void together(const Call& call, R root, C comm) {
    const int group = group_of(comm);
    put(call, {group, call.kind.bytes, in_world(group, root)});
}

// Collectives of sizes that differ between ranks: what this rank gives of it, or gets; of an
// all-to-all what it gets of each, for the send counts mean nothing with MPI_IN_PLACE.
template <typename N, typename T, typename C>
void uneven(const Call& call, N counts, T type, C comm) {
    int me = 0;
    PMPI_Comm_rank(comm_of(comm), &me);
    put(call, {group_of(comm), list(counts)[me] * sized(1, type), no_peer});
}
template <typename N, typename T, typename R, typename C>
void uneven(const Call& call, N counts, T type, R root, C comm, long own) {
    int me = 0;
    PMPI_Comm_rank(comm_of(comm), &me);
    if (number(root) == me) own = list(counts)[me] * sized(1, type);
    const int group = group_of(comm);
    put(call, {group, own, in_world(group, root)});
}
template <typename N, typename T, typename C>
void uneven_to_all(const Call& call, N counts, T type, C comm) {
    const int group = group_of(comm), n = group < 0 ? 0 : trace.groups[group].n;
    const long each = sized(1, type);
    int64_t* bytes = static_cast<int64_t*>(malloc(size_t(n + 1) * sizeof(int64_t)));
    for (int i = 0; bytes && i < n; i++) bytes[i] = list(counts)[i] * each;
    put(call, {group, call.kind.bytes, no_peer}, bytes, bytes ? n : 0);
    free(bytes);
}

// Writes everything behind a line of JSON that says what it is. `host` and `opened_s`, of the clock
// of that host, let calls of ranks that share a clock be compared.
void write_trace(FILE* out, double per_tick) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    for (char* c = host; *c; c++)
        if (*c < 32 || *c == '"' || *c == '\\') *c = '_';
    fprintf(out,
            "{\"rank\": %d, \"host\": \"%s\", \"opened_s\": %.9f, \"seconds_per_tick\": %.12e, ",
            rank, host, trace.opened_s, per_tick);
    fprintf(out, "\"full\": %s, \"odd\": %s, \"groups\": [", trace.full ? "true" : "false",
            trace.odd || asks_lost || threads.load()->next ? "true" : "false");
    for (int g = 0; g < trace.seen; g++)
        for (int i = 0; i < trace.groups[g].n; i++)
            fprintf(out, "%s%d%s",
                    i   ? ", "
                    : g ? ", ["
                        : "[",
                    trace.groups[g].members[i], i + 1 == trace.groups[g].n ? "]" : "");
    fprintf(out, "], \"names\": [");
    for (int i = 0; i < most_calls - 1 && names[i]; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", names[i]);
    fprintf(out, "]}\n");
    fwrite(trace.words, sizeof(int64_t), trace.used, out);
}

}  // namespace
