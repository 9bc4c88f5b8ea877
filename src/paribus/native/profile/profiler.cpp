// A PMPI profiler, preloaded into every rank of a user's own program: where its time goes.
//
// It is not linked with MPI: the dynamic linker loads it into the launcher and into shells too, and
// there nothing of MPI may be needed. So all that it takes of MPI is weak. Each rank writes a file
// of its own to $PARIBUS_PROFILE at MPI_Finalize, without a message to another rank: ranks that the
// profiler did not reach then hold nobody up, and are seen to be missing.
#include <fcntl.h>
#include <mpi.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kinds.hpp"
#include "timing.hpp"
#include "trace.hpp"

namespace {

uint64_t began_ticks;
double began_s, began_cpu_s, init_s;
int file = -1, ranks;

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
    open_trace(ranks, double(now() - began_ticks) / (clock_s() - began_s));
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
    if (int at = open_file("calls"); at >= 0)
        if (FILE* out = fdopen(at, "w")) write_trace(out, per_tick), fclose(out);
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
#define FORTRAN(Name, real, seen, N, KIND, AFTER, TRACE)     \
    extern "C" void real(F##N, void*) __attribute__((weak)); \
    extern "C" void seen(F##N, void* error) {                \
        if (!counts()) return real(A##N, error);             \
        Call call(id_##Name, KIND);                          \
        real(A##N, error);                                   \
        call.over();                                         \
        [[maybe_unused]] Kind kind = call.kind;              \
        AFTER;                                               \
        if (call.began) TRACE;                               \
    }

#define CALL(Name, lower, N, TYPES, KIND, AFTER, TRACE)                               \
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
        if (call.began) TRACE;                                                        \
        return answer;                                                                \
    }                                                                                 \
    FORTRAN(Name, pmpi_##lower##_, mpi_##lower##_, N, KIND, AFTER, TRACE)             \
    FORTRAN(Name, REAL_F08(lower), mpi_##lower##_f08_, N, KIND, AFTER, TRACE)

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
