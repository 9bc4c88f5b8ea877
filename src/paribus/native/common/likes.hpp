// Measuring as other programs define it, to be compared with them: their clock (MPI_Wtime), their
// loops, their counts, their buffers. One sample stands for a whole loop, as they print one figure.
//
// OSU Micro-Benchmarks 7: the clock is read around every operation and the spans are added up;
// collectives have a barrier between operations, and the mean over the ranks is printed.
// Intel MPI Benchmarks 2021: PingPong, Uniband and Biband read the clock around the loop;
// collectives read it around every operation, with a barrier between, and print minimum, maximum
// and mean over the ranks (the mean is taken here). With a fixed count, the whole loop is run once
// before the one that counts. All of them use a communicator of their own, which some libraries
// look up a little slower than MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <string>

#include "kernel.hpp"

namespace paribus {

struct Counts {
    long iterations;
    long warmup;
};

// Their default counts, unless the arguments say otherwise. OSU's large messages begin above 8 KiB.
inline Counts counts_of(const Session& session, long bytes, Counts osu_small, Counts osu_large) {
    const Arguments& asked = session.arguments;
    Counts counts = bytes > 8192 ? osu_large : osu_small;
    if (session.like(Like::imb)) {
        // At most 1000 iterations and 40 MiB in all.
        counts.iterations = std::clamp((40L << 20) / std::max(bytes, 1L), 1L, 1000L);
    }
    if (asked.iterations > 0) counts.iterations = asked.iterations;
    if (session.like(Like::imb)) counts.warmup = counts.iterations;
    if (asked.warmup >= 0) counts.warmup = asked.warmup;
    return counts;
}

// Adds up the spans of `n` single operations; `between` is carried out after each, unmeasured.
template <class Operation, class Between>
double sum_of_spans_s(Operation& operation, long n, Between between) {
    double total = 0;
    for (long i = 0; i < n; ++i) {
        const double start = MPI_Wtime();
        operation(1);
        total += MPI_Wtime() - start;
        between();
    }
    return total;
}

inline Series like_series(Session& session, const std::string& case_text, long batch) {
    Series series;
    series.case_text = case_text;
    series.batch = batch;
    const long samples = session.arguments.samples_given ? session.arguments.samples : 1;
    series.samples.resize(static_cast<std::size_t>(samples));
    return series;
}

inline void refuse_nothing(Session& session, const Series& series) {
    for (const double sample : series.samples)
        session.give_up_if(session.rank == 0 && !(sample > 0)
                               ? "the clock did not move at " + series.case_text
                               : "");
}

// Messages between pairs of ranks, no barrier between operations: the mean over the ranks below
// `senders` (OSU) or the slowest rank (IMB). Returns nanoseconds per operation.
template <class Operation>
Series sample_flow_like(Session& session, Operation operation, const Counts& counts, int senders,
                        const std::string& case_text) {
    Series series = like_series(session, case_text, counts.iterations);
    const bool osu = session.like(Like::osu);
    for (double& sample : series.samples) {
        double spent_s = 0, taken_s = 0;
        if (osu) {
            MPI_Barrier(session.comm);
            operation(counts.warmup);
            const double own = sum_of_spans_s(operation, counts.iterations, [] {});
            spent_s = session.rank < senders ? own / senders : 0;
        } else {
            for (const long n : {counts.warmup, counts.iterations}) {
                MPI_Barrier(session.comm);
                MPI_Barrier(session.comm);
                const double start = MPI_Wtime();
                operation(n);
                spent_s = MPI_Wtime() - start;
            }
        }
        MPI_Allreduce(&spent_s, &taken_s, 1, MPI_DOUBLE, osu ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
        sample = 1e9 * taken_s / static_cast<double>(counts.iterations);
    }
    refuse_nothing(session, series);
    return series;
}

// Collectives: mean over the ranks of each rank's mean. Returns nanoseconds per operation.
template <class Operation>
Series sample_together_like(Session& session, Operation operation, const Counts& counts,
                            const std::string& case_text) {
    Series series = like_series(session, case_text, counts.iterations);
    const auto barrier = [&session] { MPI_Barrier(session.comm); };
    for (double& sample : series.samples) {
        double spent_s = 0, sum_s = 0;
        for (const long n : {counts.warmup, counts.iterations}) {
            // OSU goes on from warm-up to measuring without a pause; IMB starts anew.
            if (session.like(Like::imb)) barrier();
            if (session.like(Like::imb) || n == counts.warmup) barrier();
            spent_s = sum_of_spans_s(operation, n, barrier);
        }
        MPI_Allreduce(&spent_s, &sum_s, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sample = 1e9 * sum_s / session.ranks / static_cast<double>(counts.iterations);
    }
    refuse_nothing(session, series);
    return series;
}

}  // namespace paribus
