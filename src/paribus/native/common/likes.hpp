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
inline Counts counts_of(const Session& session, long bytes) {
    const Spec& spec = session.spec;
    const Arguments& asked = session.arguments;
    Counts counts{spec.osu_iterations, spec.osu_warmup};
    if (bytes > 8192) counts = {spec.osu_large_iterations, spec.osu_large_warmup};
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

// Samples of one case: `spent_s()` is what a loop took this rank; what all ranks together took, or
// the slowest, is divided by the iterations. Returns nanoseconds per operation.
template <class Spent>
Series sample_spent(Session& session, const Counts& counts, const std::string& case_text,
                    MPI_Op together, Spent spent_s) {
    Series series = session.series(case_text, counts.iterations);
    const Arguments& asked = session.arguments;
    series.samples.resize(static_cast<std::size_t>(asked.samples_given ? asked.samples : 1));
    for (double& sample : series.samples) {
        double own_s = spent_s(), all_s = 0;
        MPI_Allreduce(&own_s, &all_s, 1, MPI_DOUBLE, together, MPI_COMM_WORLD);
        sample = 1e9 * all_s / static_cast<double>(counts.iterations);
    }
    for (const double sample : series.samples)
        session.give_up_if(
            session.rank == 0 && !(sample > 0) ? "the clock did not move at " + case_text : "");
    return series;
}

// Messages between pairs of ranks, no barrier between operations: the mean over the lower ranks
// of the pairs (OSU) or the slowest rank (IMB).
template <class Operation>
Series sample_flow_like(Session& session, Operation operation, const Counts& counts,
                        const std::string& case_text) {
    const int senders = session.ranks / 2;
    if (session.like(Like::osu))
        return sample_spent(session, counts, case_text, MPI_SUM, [&] {
            MPI_Barrier(session.comm);
            operation(counts.warmup);
            const double own_s = sum_of_spans_s(operation, counts.iterations, [] {});
            return session.rank < senders ? own_s / senders : 0;
        });
    return sample_spent(session, counts, case_text, MPI_MAX, [&] {
        double spent_s = 0;
        for (const long n : {counts.warmup, counts.iterations}) {
            MPI_Barrier(session.comm);
            MPI_Barrier(session.comm);
            const double start = MPI_Wtime();
            operation(n);
            spent_s = MPI_Wtime() - start;
        }
        return spent_s;
    });
}

// Collectives: mean over the ranks of each rank's mean.
template <class Operation>
Series sample_together_like(Session& session, Operation operation, const Counts& counts,
                            const std::string& case_text) {
    const auto barrier = [&session] { MPI_Barrier(session.comm); };
    return sample_spent(session, counts, case_text, MPI_SUM, [&] {
        double spent_s = 0;
        for (const long n : {counts.warmup, counts.iterations}) {
            // OSU goes on from warm-up to measuring without a pause; IMB starts anew.
            if (session.like(Like::imb)) barrier();
            if (session.like(Like::imb) || n == counts.warmup) barrier();
            spent_s = sum_of_spans_s(operation, n, barrier);
        }
        return spent_s / session.ranks;
    });
}

}  // namespace paribus
