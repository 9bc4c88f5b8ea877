// A PMPI profiler, preloaded into every rank of a user's own program: where its time goes.
//
// It is not linked with MPI: the dynamic linker loads it into the launcher and into shells too, and
// there nothing of MPI may be needed. So all that it takes of MPI is weak. Each rank writes a file
// of its own to $PARIBUS_PROFILE at MPI_Finalize, without a message to another rank: ranks that the
// profiler did not reach then hold nobody up, and are seen to be missing.
//
// Every call is counted, and timed too where that takes less than 1 % of the time. Where it takes
// more, the calls of one name and class that are short are timed by a draw: one of each 32, which
// counts 32 times. What decides whether a call is drawn is known before it, so the sum of times is
// unbiased (D. G. Horvitz & D. J. Thompson, J. Am. Stat. Assoc. 47, 1952). One long wait among very
// many short calls would be missed 31 times of 32, and counted 32 times else. So a thread of the
// profiler reads the clock every 20 ms: a call during which it did so twice counts for itself.
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#ifdef OPEN_MPI
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_request_null
#pragma weak ompi_mpi_byte
#else
extern "C" {
extern char ompi_mpi_comm_world;
}
#pragma weak ompi_mpi_comm_world
#endif
#define OF_MPI(name) extern "C" decltype(name) name __attribute__((weak));
OF_MPI(PMPI_Comm_rank)
OF_MPI(PMPI_Comm_size)
OF_MPI(PMPI_Comm_remote_size)
OF_MPI(PMPI_Comm_test_inter)
OF_MPI(PMPI_Get_library_version)
OF_MPI(PMPI_Type_size)
OF_MPI(PMPI_Type_get_envelope)
#ifndef MPI_Comm_f2c
OF_MPI(MPI_Comm_f2c)
#endif
#ifndef MPI_Type_f2c
OF_MPI(MPI_Type_f2c)
#endif
#ifndef MPI_Request_c2f
OF_MPI(MPI_Request_c2f)
#endif

#define FAST __attribute__((always_inline)) inline  // on the way of every call

namespace {

// As SMALL and LARGE of judge/profiles.py, where their reason is given.
constexpr long small_most = 1 << 10, large_least = 1 << 16;

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
};

std::atomic<Thread*> threads;
std::atomic<bool> running, ticking;
std::atomic<uint64_t> tick, tick_before;  // when the clock was read last, and before that
__thread Thread* mine __attribute__((tls_model("initial-exec")));
std::atomic<uint64_t> requests[1 << 14];
uint64_t null_request, null_request_f;
uint64_t began_ticks;
double timing_ticks, counting_ticks;  // what it takes to time a call, and only to count it
double began_s, began_cpu_s, init_s;
int file = -1, rank, ranks;
bool steady;  // the processor's own counter can serve as a clock

double clock_s() {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return double(at.tv_sec) + 1e-9 * double(at.tv_nsec);
}

double cpu_s() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    auto seconds = [](timeval of) { return double(of.tv_sec) + 1e-6 * double(of.tv_usec); };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

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
    Kind kind;
    Thread* thread;
    Count& count;
    uint64_t seen, start;  // start 0: it is not timed
    FAST Call(int name, Kind kind_)
        : kind(kind_),
          thread(mine),
          count(thread->counts[name][kind.of]),
          seen(tick.load(std::memory_order_relaxed)),
          start(0) {
        thread->inside = true;
        thread->calls += 1;
        count.calls += 1;
        count.bytes += uint64_t(kind.bytes);
        if (count.skip) count.skip -= 1;
        else start = now();
    }
    FAST void over() {
        if (start) take(count, thread, start, seen);
        else if (tick.load(std::memory_order_relaxed) != seen) take_long(count, seen);
        thread->inside = false;
    }
};

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
inline std::atomic<uint64_t>& slot(uint64_t key) {
    return requests[(key * 0x9E3779B97F4A7C15u) >> 50];
}

// The class of a request is kept until its handle comes again: the latest one of a slot.
template <typename R>
void remember(Kind kind, const R* request) {
    uint64_t k = key(request);
    slot(k).store(k << 4 | uint64_t(kind.of), std::memory_order_relaxed);
}

// A wait counts with the class of its requests, if they are of one.
template <typename R>
Kind waited(int n, const R* first, size_t stride) {
    int of = -1;
    for (int i = 0; i < n; i++) {
        auto* request =
            reinterpret_cast<const R*>(reinterpret_cast<const char*>(first) + i * stride);
        uint64_t k = key(request);
        if (k == null_of(request)) continue;
        uint64_t entry = slot(k).load(std::memory_order_relaxed);
        int found = entry >> 4 == k ? int(entry & 15) : int(waiting);
        if (of >= 0 && of != found) return {waiting, 0};
        of = found;
    }
    return {of < 0 ? int(waiting) : of, 0};
}
inline Kind waits(int n, const MPI_Request* r) { return waited(n, r, sizeof(MPI_Request)); }
inline Kind waits(int n, const void* r) { return waited(n, r, sizeof(MPI_Fint)); }
inline Kind waits(const void* n, const void* r) { return waits(number(n), r); }

void say(const char* text) {
    if (write(2, text, strlen(text)) < 0) return;
}

// Returns the descriptor of a new file of this rank, -1 where there is none.
int open_file(const char* name) {
    const char* folder = getenv("PARIBUS_PROFILE");
    char path[4096];
    if (!folder) return -1;
    snprintf(path, sizeof path, "%s/%s.%ld", folder, name, long(getpid()));
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

void check(bool there) {
#ifdef OPEN_MPI
    bool same = &ompi_mpi_comm_world != nullptr;
#else
    bool same = &ompi_mpi_comm_world == nullptr;
#endif
    if (there && same) return;
    close(open_file("other"));
    say("paribus profile: the program uses another MPI than the profiler is built for\n");
    _exit(1);
}

// What a call costs that is timed, or only counted: the least of ten measurements.
double own_ticks(bool timed) {
    constexpr int many = 100;
    MPI_Request none{};
    if (!counts()) return 0;
    Count& count = mine->counts[most_calls - 1][messages];
    uint64_t least = UINT64_MAX;
    for (int part = 0; part < 10; part++) {
        count.skip = timed ? 0 : many;
        count.left = 0;
        uint64_t start = now();
        for (int i = 0; i < many && counts(); i++) {
            Call call(most_calls - 1, message(1, MPI_BYTE));
            call.over();
            remember(call.kind, &none);
        }
        uint64_t took = now() - start;
        if (took < least) least = took;
    }
    return double(least) / many;
}

void begin(double called_s) {
    if (running.load() || file >= 0) return;
    MPI_Request none = MPI_REQUEST_NULL;
    null_request = key(&none);
    null_request_f = (uint32_t)MPI_Request_c2f(MPI_REQUEST_NULL);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char name[32];
    snprintf(name, sizeof name, "%d", rank);
    if ((file = open_file(name)) < 0) return;
    steady = counter_is_steady();
    began_cpu_s = cpu_s();
    began_s = clock_s();
    init_s = began_s - called_s;
    began_ticks = now();
    running.store(true);
    timing_ticks = own_ticks(true);
    counting_ticks = own_ticks(false);
}

void put(FILE* out, const char* text) {
    // The first line: what follows in that of MPICH says how it was built.
    for (; *text && *text != '\n'; text++)
        if ((unsigned char)*text >= 32 && *text != '"' && *text != '\\') fputc(*text, out);
}

void end() {
    if (!running.load()) return;
    double seconds = clock_s() - began_s, per_tick = seconds / double(now() - began_ticks);
    double cpu = cpu_s() - began_cpu_s;
    running.store(false);
    static Count sums[most_calls][classes];
    int several = 0;
    double own_s = 0, tick = tick_s / per_tick;
    for (Thread* one = threads.load(); one; one = one->next, several++)
        for (int i = 0; i < most_calls - 1; i++)
            for (int c = 0; c < classes; c++) {
                const Count& count = one->counts[i][c];
                sums[i][c].calls += count.calls;
                sums[i][c].bytes += count.bytes;
                sums[i][c].timed += count.timed;
                sums[i][c].ticks += count.ticks - double(count.late) * tick / 2;
                sums[i][c].variance += count.variance + double(count.late) * tick * tick / 12;
                own_s += per_tick * (double(count.timed) * timing_ticks +
                                     double(count.calls - count.timed) * counting_ticks);
            }
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(library, &length);
    FILE* out = fdopen(file, "w");
    if (!out) return;
    fprintf(out, "{\"rank\": %d, \"ranks\": %d, \"threads\": %d, \"seconds\": %.9f, ", rank, ranks,
            several, seconds);
    fprintf(out, "\"cpu_s\": %.6f, \"init_s\": %.9f, \"own_s\": %.9f, \"library\": \"", cpu, init_s,
            own_s);
    put(out, library);
    fprintf(out, "\", \"calls\": [");
    const char* comma = "";
    for (int i = 0; i < most_calls - 1; i++)
        for (int c = 0; c < classes; c++) {
            Count& sum = sums[i][c];
            if (!sum.calls) continue;
            fprintf(out, "%s[\"%s\", \"%s\", %llu, %.9f, %llu, %llu, %.9e]", comma, names[i],
                    class_names[c], (unsigned long long)sum.calls, sum.ticks * per_tick,
                    (unsigned long long)sum.bytes, (unsigned long long)sum.timed,
                    sum.variance * per_tick * per_tick);
            comma = ", ";
        }
    fprintf(out, "]}\n");
    fclose(out);
}

}  // namespace

#define P1(A) A a1
#define P2(A, B) A a1, B a2
#define P3(A, B, C) A a1, B a2, C a3
#define P4(A, B, C, D) P3(A, B, C), D a4
#define P5(A, B, C, D, E) P4(A, B, C, D), E a5
#define P6(A, B, C, D, E, F) P5(A, B, C, D, E), F a6
#define P7(A, B, C, D, E, F, G) P6(A, B, C, D, E, F), G a7
#define P8(A, B, C, D, E, F, G, H) P7(A, B, C, D, E, F, G), H a8
#define P9(A, B, C, D, E, F, G, H, I) P8(A, B, C, D, E, F, G, H), I a9
#define P10(A, B, C, D, E, F, G, H, I, J) P9(A, B, C, D, E, F, G, H, I), J a10
#define P12(A, B, C, D, E, F, G, H, I, J, K, L) P10(A, B, C, D, E, F, G, H, I, J), K a11, L a12
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A12 A10, a11, a12
#define F1 void* a1
#define F2 F1, void* a2
#define F3 F2, void* a3
#define F4 F3, void* a4
#define F5 F4, void* a5
#define F6 F5, void* a6
#define F7 F6, void* a7
#define F8 F7, void* a8
#define F9 F8, void* a9
#define F10 F9, void* a10
#define F12 F10, void *a11, void *a12

// The Fortran bindings of Open MPI call PMPI, those of MPICH call MPI: so both languages are taken.
// Fortran's own PMPI is called with the same addresses, for some of them mean something there
// (MPI_IN_PLACE, MPI_STATUS_IGNORE). The module mpi_f08 has bindings of its own. In MPICH those
// with a buffer (mpi_send_f08ts_) call MPI of C, which counts them, and the others call PMPI.
#ifdef OPEN_MPI
#define REAL_F08(lower) pmpi_##lower##_f08_
#else
#define REAL_F08(lower) pmpir_##lower##_f08_
#endif
#define FORTRAN(Name, real, seen, N, KIND, AFTER)            \
    extern "C" void real(F##N, void*) __attribute__((weak)); \
    extern "C" void seen(F##N, void* error) {                \
        if (!counts()) return real(A##N, error);             \
        Call call(id_##Name, KIND);                          \
        real(A##N, error);                                   \
        call.over();                                         \
        [[maybe_unused]] Kind kind = call.kind;              \
        AFTER;                                               \
    }

#define CALL(Name, lower, N, TYPES, KIND, AFTER)                                      \
    enum { id_##Name = __COUNTER__ };                                                 \
    static_assert(id_##Name < most_calls - 1, "most_calls is too small");             \
    [[maybe_unused]] static const char* const name_##Name = names[id_##Name] = #Name; \
    OF_MPI(PMPI_##Name)                                                               \
    extern "C" int MPI_##Name(P##N TYPES) {                                           \
        if (!counts()) return PMPI_##Name(A##N);                                      \
        Call call(id_##Name, KIND);                                                   \
        int answer = PMPI_##Name(A##N);                                               \
        call.over();                                                                  \
        [[maybe_unused]] Kind kind = call.kind;                                       \
        AFTER;                                                                        \
        return answer;                                                                \
    }                                                                                 \
    FORTRAN(Name, pmpi_##lower##_, mpi_##lower##_, N, KIND, AFTER)                    \
    FORTRAN(Name, REAL_F08(lower), mpi_##lower##_f08_, N, KIND, AFTER)

#include "calls.hpp"

#define BEGIN(real, seen, N)                          \
    extern "C" void real(F##N) __attribute__((weak)); \
    extern "C" void seen(F##N) {                      \
        check(PMPI_Comm_rank != nullptr);             \
        double called = clock_s();                    \
        real(A##N);                                   \
        begin(called);                                \
    }
BEGIN(pmpi_init_, mpi_init_, 1)
BEGIN(REAL_F08(init), mpi_init_f08_, 1)
BEGIN(pmpi_init_thread_, mpi_init_thread_, 3)
BEGIN(REAL_F08(init_thread), mpi_init_thread_f08_, 3)
OF_MPI(PMPI_Init)
extern "C" int MPI_Init(int* argc, char*** argv) {
    check(PMPI_Init != nullptr);
    double called = clock_s();
    int answer = PMPI_Init(argc, argv);
    begin(called);
    return answer;
}
OF_MPI(PMPI_Init_thread)
extern "C" int MPI_Init_thread(int* argc, char*** argv, int wanted, int* given) {
    check(PMPI_Init_thread != nullptr);
    double called = clock_s();
    int answer = PMPI_Init_thread(argc, argv, wanted, given);
    begin(called);
    return answer;
}

#define END(real, seen)                                \
    extern "C" void real(void*) __attribute__((weak)); \
    extern "C" void seen(void* error) {                \
        end();                                         \
        real(error);                                   \
    }
END(pmpi_finalize_, mpi_finalize_)
END(REAL_F08(finalize), mpi_finalize_f08_)
OF_MPI(PMPI_Finalize)
extern "C" int MPI_Finalize() {
    end();
    return PMPI_Finalize();
}
