// How a benchmark of NPB is measured: the whole timed region several times in one launch.
//
// A benchmark is a struct made from a Launch, and has
//   static constexpr Kind kind     its name, summary, and how many ranks it may have
//   static double bytes(Launch)    memory of one rank
//   static long least_ranks(char size), most_ranks(char size)
//   double operations()            that the official figure counts in the timed region
//   void prepare()                 restores what the timed region starts from
//   void run()                     the official timed region
//   std::string wrong()            what the official verification says; "" where it passes
//   std::size_t checked()          how many values that compared on this rank
//   void corrupt()                 damages one value, so that the verification must fail
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "../common/repeated.hpp"

namespace paribus::npb {

struct Kind {
    const char* name;
    const char* summary;
    bool power_of_two;    // is what the number of ranks must be
    bool square = false;  // or this
};

// What is the same for all repetitions of a launch.
struct Launch {
    char size;  // class: S, W, A, B, C, D
    int rank, ranks;
    MPI_Comm comm;
};

constexpr Option options[] = {{"class",
                               "A",
                               "size of the problem: S, W, A, B, C or D",
                               0,
                               0,
                               false,
                               {"S", "W", "A", "B", "C", "D"}},
                              {}};

inline std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.15g", value);
    return text;
}

// Whether a figure lies within the official tolerance of the official value, and a sentence if
// not; NaN does not.
inline std::string differs(const char* what, double found, double official, double tolerance) {
    if (std::abs((found - official) / official) <= tolerance) return "";
    return std::string(what) + " is " + number(found) + ", the official value is " +
           number(official);
}

// What is wrong with both of two things.
inline std::string both(const std::string& one, const std::string& other) {
    return one + (one.empty() || other.empty() ? "" : "; ") + other;
}

template <class Benchmark>
void refuse_ranks(Session& session, char size) {
    const long most = Benchmark::most_ranks(size), least = Benchmark::least_ranks(size);
    const bool power = (session.ranks & (session.ranks - 1)) == 0;
    const double root = std::sqrt(session.ranks);
    if (session.ranks >= least && session.ranks <= most &&
        (power || !Benchmark::kind.power_of_two) &&
        (root == std::floor(root) || !Benchmark::kind.square))
        return;
    session.refuse("class " + std::string(1, size) + " takes " +
                   (Benchmark::kind.square          ? "1, 4, 9 ... "
                    : !Benchmark::kind.power_of_two ? "1 to "
                    : least > 1                     ? "4, 8, 16 ... "
                                                    : "1, 2, 4, 8 ... ") +
                   std::to_string(most) + " ranks, not " + std::to_string(session.ranks));
}

// The longest of all ranks' seconds for the timed region, once.
template <class Benchmark>
double repeat(Session& session, Benchmark& benchmark, const std::string& where) {
    benchmark.prepare();
    benchmark.in_mpi.clear();
    const double longest = slowest_s(session, [&] {
        benchmark.run();
        session.delay();
    });
    if (session.arguments.corrupt && session.rank == session.ranks - 1) benchmark.corrupt();
    const std::string wrong = benchmark.wrong();
    session.give_up_if(wrong.empty() ? "" : "verification failed at " + where + ": " + wrong);
    session.verify(where, -1, benchmark.checked());
    return longest;
}

template <class Benchmark>
void measure(Session& session) {
    const char size = session.arguments.text.at("class")[0];
    const Launch launch{size, session.rank, session.ranks, session.comm};
    const std::string where =
        Object().add("class", std::string(1, size)).add("ranks", session.ranks).text();
    refuse_ranks<Benchmark>(session, size);
    Benchmark benchmark(launch);
    Series seconds = session.series(where, 1), rates = session.series(where, 1);
    const double untimed = repeat(session, benchmark, where);
    set_delay(session, untimed);
    double in_mpi = 0, all = 0;
    for (long n = repetitions(session.arguments, untimed); n > 0; --n) {
        const double took = repeat(session, benchmark, where);
        seconds.samples.push_back(took);
        rates.samples.push_back(1e-6 * benchmark.operations() / took);
        in_mpi += 1e-9 * benchmark.in_mpi.ns();
        all += took;
    }
    seconds.metric = "time";
    seconds.unit = "s";
    seconds.more = Object().add("in_mpi", shares(session, in_mpi, all)).text();
    session.keep(std::move(rates));
    session.keep(std::move(seconds));
}

template <class Benchmark>
Need need(const Arguments& asked, int ranks) {
    const char size = asked.text.at("class")[0];
    return {Benchmark::bytes({size, 0, ranks, MPI_COMM_NULL}),
            "class " + std::string(1, size) + " does"};
}

template <class Benchmark>
int launch(int argc, char** argv) {
    Spec spec;
    spec.name = Benchmark::kind.name;
    spec.summary = Benchmark::kind.summary;
    spec.metric = "mops";
    spec.unit = "Mop/s";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.intervals = true;
    spec.options = options;
    spec.need = need<Benchmark>;
    spec.samples = 10;
    spec.max_case_s = 5;
    Session session(spec);
    session.start(argc, argv);
    measure<Benchmark>(session);
    return session.finish();
}

}  // namespace paribus::npb
