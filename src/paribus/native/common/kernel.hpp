// The frame that every kernel runs in: what it is asked, its first and last line, its way out.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "check.hpp"
#include "clock.hpp"
#include "json.hpp"
#include "machine.hpp"
#include "mapped.hpp"
#include "probe.hpp"
#include "sync.hpp"

namespace paribus {

// One metric of one case. `starts` are this rank's own clock readings, one per sample, kept until
// the clocks can be compared; empty where ranks do not start together.
struct Series {
    std::string case_text;
    std::string metric;
    long batch = 1;
    std::vector<double> samples;
    std::vector<std::int64_t> starts;
    const char* unit = nullptr;  // where it is not the kernel's
    std::string more{};          // what else there is to say: an object of JSON
};

// An amount of memory, for people: "96 MiB".
std::string mib(double bytes);

// From MPI_Init to MPI_Finalize. Lines are kept until the end: a launcher that forwards them would
// need a core meanwhile. Every rank holds one and calls the same functions in the same order.
class Session {
public:
    explicit Session(const Spec& kernel) : spec(kernel) {}

    // Starts MPI, reads the arguments, and sees the machine as it is before anything is measured.
    // Does not return where there is nothing to measure (--help, --self-test: exit code 0) or
    // something cannot be (2). Collective, like all that follow.
    void start(int argc, char** argv);

    // What start() finds.
    const Spec spec;
    Arguments arguments;
    Clock clock;
    int rank = 0;
    int ranks = 1;
    MPI_Comm comm = MPI_COMM_WORLD;  // of what is measured; Intel's programs split one off
    double init_ms = 0;
    std::unique_ptr<Buffer> kept_out, kept_in;  // from case to case, where they share them
    std::uint64_t delay_loops = 0;              // of spin() in every operation of this case

    void delay() const {
        if (delay_loops > 0) spin(delay_loops);
    }

    bool like(Like which) const { return arguments.like == which; }

    const std::vector<std::string>& hosts() const { return hosts_; }  // of each rank

    std::string case_text(long bytes) const;

    Series series(const std::string& where, long batch) const;

    // Ends every rank with exit code 2 and one sentence; nothing has been measured. Collective.
    [[noreturn]] void refuse(const std::string& why);

    // Refuses what `what` says ("class D does") where the ranks of a machine, with `bytes` each,
    // need more than it has free. Collective.
    void refuse_larger(double bytes, const std::string& what);

    // Ends every rank with exit code 1 if `wrong` is not empty on any. Collective.
    void give_up_if(const std::string& wrong);

    // Counts `n` received bytes or elements as right, or gives up naming the one, at `position`,
    // that is wrong (-1: none). Collective.
    void verify(const std::string& case_text, long position, std::size_t n);

    // For the tests: damages one byte before it is checked, on the last rank.
    void corrupt(unsigned char* data, std::size_t bytes) const {
        if (arguments.corrupt && rank == ranks - 1 && bytes > 0) data[bytes / 2] ^= 0x10;
    }

    void keep(Series series) { series_.push_back(std::move(series)); }

    // Prints everything and returns the exit code of main. Collective.
    int finish();

private:
    [[noreturn]] void leave(int status, const std::string& text, std::FILE* where);

    // What recording one sample costs, reading the clock included: the fastest of 20 rounds.
    void self_test();

    // All ranks plan with rank 0's clock: with their own, two ranks may come to different batches
    // and then wait for each other for ever. How long a spin takes stays each rank's own.
    void agree_on_clock();

    void refuse_wrong_ranks();

    // `mine` of every rank, cut at 255 bytes.
    std::vector<std::string> gather(const std::string& mine) const;

    void gather_places();

    // Where --memory is given: prints what a rank needs and ends, without MPI, which a program
    // starts up only behind a launcher.
    void tell_need(const Arguments& given) const;

    void probe(State& state);

    std::string first_line(const std::string& carrier) const;

    std::string line_of(const Series& series, const Offset& offset_end) const;

    std::string last_line(const Usage& now, double wall_s, const State& after) const;

    std::vector<std::string> hosts_, boots_, affinity_, groups_, mapped_hashes_;  // of each rank
    Mapped linked_, mapped_;       // into this one before MPI_Init, and after
    std::vector<int> cores_here_;  // of the other ranks on rank 0's machine
    std::vector<Series> series_;
    bool probes_memory_ = true;  // not where the program needs less memory than the probe
    State state_before_;
    Offset offset_start_;
    Usage usage_;
    std::int64_t began_ = 0;
    double checked_ = 0;
    double probe_ms_ = 0;
};

}  // namespace paribus
