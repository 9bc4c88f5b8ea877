// How samples are taken: how long one must be, how many, and with which start.
//
// An operation is a callable `operation(n)` that carries out this rank's part of n operations.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernel.hpp"

namespace paribus {

// What one launch will do for a case; the same on all ranks, decided before measuring.
struct Plan {
    long batch = 1;    // operations timed together
    long samples = 0;  // batches recorded
    long warmup = 0;   // batches dropped before
    double operation_ns = 0;
};

template <class Operation>
double timed_ns(const Session& session, Operation& operation, long n) {
    start_together(session.rank, session.ranks);
    const std::int64_t start = now_ns();
    operation(n);
    return of_rank_0(static_cast<double>(now_ns() - start) - session.clock.cost_ns, session.rank);
}

// The time of `n` operations as rank 0 sees it: least of five, or of one if that took long.
template <class Operation>
double least_ns(const Session& session, Operation& operation, long n) {
    double least = timed_ns(session, operation, n);
    for (int trial = 1; trial < 5 && least < 2e6; ++trial)
        least = std::min(least, timed_ns(session, operation, n));
    return std::max(least, 1.0);
}

// The usual time of one operation, in batches that follow each other as samples do: the median of
// 31, or of as many as 50 ms allow, after a tenth as warm-up. With a start of its own each would
// be longer, and a delay in proportion to it too. The same on all ranks.
template <class Operation>
double usual_ns(const Session& session, Operation& operation, long batch, double batch_ns) {
    const long batches = std::clamp(static_cast<long>(5e7 / batch_ns), 1L, 31L);
    Stamps stamps(batches + 1);
    start_together(session.rank, session.ranks);
    operation((batches + 9) / 10 * batch);
    stamps.record();
    for (long i = 0; i < batches; ++i) {
        operation(batch);
        stamps.record();
    }
    std::vector<double> spans;
    for (long i = 0; i < batches; ++i)
        spans.push_back(static_cast<double>(stamps[i + 1] - stamps[i]) - session.clock.cost_ns);
    std::nth_element(spans.begin(), spans.begin() + batches / 2, spans.end());
    const double each = spans[static_cast<std::size_t>(batches / 2)] / static_cast<double>(batch);
    return std::max(of_rank_0(each, session.rank), 0.0);
}

// Sets the session's delay, on ranks where it `delays`, and returns what an operation takes longer
// by, in nanoseconds. Collective; the answer is the same on all ranks.
//
// A share is taken of the operation as it is. Waiting also empties the processor's pipeline and
// changes how polling ranks meet, tens of nanoseconds that only show in place: so what a first
// guess adds is measured, in windows that alternate with undelayed ones, and the surplus is taken
// off.
template <class Operation>
double set_delay(Session& session, Operation& operation, long batch, double batch_ns, bool delays) {
    const Arguments& asked = session.arguments;
    const double spin_ns = session.clock.spin_ns;  // each rank's own
    double extra_ns = 1000 * asked.delay_us;
    double loops = extra_ns / spin_ns;
    if (asked.delay_share > 0) {
        const auto mean = [](const std::vector<double>& each) {
            return std::accumulate(each.begin(), each.end(), 0.0) /
                   static_cast<double>(each.size());
        };
        const double guess =
            asked.delay_share * usual_ns(session, operation, batch, batch_ns) / spin_ns;
        const long windows = std::clamp(static_cast<long>(1e8 / (62 * batch_ns)), 2L, 8L);
        std::vector<double> plain, delayed;
        for (long i = 0; i < windows; ++i) {
            session.delay_loops = 0;
            plain.push_back(usual_ns(session, operation, batch, batch_ns));
            session.delay_loops = delays ? static_cast<std::uint64_t>(guess) : 0;
            delayed.push_back(usual_ns(session, operation, batch, batch_ns));
        }
        const double wanted_ns = asked.delay_share * mean(plain);
        const double surplus_ns = mean(delayed) - mean(plain) - wanted_ns;
        loops += std::max(0.0, guess - surplus_ns / spin_ns);
        extra_ns += wanted_ns;
    }
    session.delay_loops = delays ? static_cast<std::uint64_t>(loops) : 0;
    return extra_ns;
}

// Decides batch and counts from a few trials. The first operation is not timed: it may open
// connections and map memory. Sets the session's delay where one is asked for. Collective.
template <class Operation>
Plan plan_case(Session& session, Operation& operation, bool delays) {
    const Arguments& asked = session.arguments;
    session.delay_loops = 0;
    operation(1);
    Plan plan;
    plan.batch = std::max(1L, asked.iterations);
    double ns = least_ns(session, operation, plan.batch);
    const double wanted = session.clock.least_sample_ns() + session.clock.cost_ns;
    // A fifth more than needed, because a later sample may be faster than any trial.
    while (asked.iterations == 0 && ns < 1.2 * wanted && plan.batch < 1 << 24) {
        const double factor = std::min(16.0, std::max(1.2, 1.25 * wanted / ns));
        plan.batch = static_cast<long>(std::ceil(static_cast<double>(plan.batch) * factor));
        ns = least_ns(session, operation, plan.batch);
    }
    plan.operation_ns = ns / static_cast<double>(plan.batch);
    const double extra_ns = set_delay(session, operation, plan.batch, ns, delays);
    const double sample_ns = ns + extra_ns * static_cast<double>(plan.batch);
    const long fit = static_cast<long>(std::min(1e9, 1e9 * asked.max_case_s / sample_ns));
    plan.samples = std::min(asked.samples, std::max(session.spec.least_samples, fit));
    plan.warmup = asked.warmup >= 0
                      ? asked.warmup
                      : std::max((plan.samples + 9) / 10,
                                 (session.spec.least_warmup - 1 + plan.batch) / plan.batch);
    return plan;
}

// Nanoseconds per operation, refused where the clock cannot see a sample.
inline std::vector<double> per_operation(Session& session, const std::vector<double>& spans_ns,
                                         long batch, const std::string& case_text) {
    std::vector<double> each;
    std::string wrong;
    for (const double span : spans_ns) {
        each.push_back((span - session.clock.cost_ns) / static_cast<double>(batch));
        if (each.back() <= 0 && wrong.empty())
            wrong = "a sample at " + case_text +
                    " is shorter than reading the clock; raise --iterations";
    }
    session.give_up_if(wrong);
    return each;
}

// Samples back to back on rank 0's clock, which is what counts where one rank waits for the other.
// Returns nanoseconds per operation (the same on all ranks only in length) and the batch.
template <class Operation>
Series sample_flow(Session& session, Operation operation, bool delays,
                   const std::string& case_text) {
    const Plan plan = plan_case(session, operation, delays);
    Stamps stamps(plan.samples + 1);
    start_together(session.rank, session.ranks);
    operation(plan.warmup * plan.batch);
    stamps.record();
    for (long i = 0; i < plan.samples; ++i) {
        operation(plan.batch);
        stamps.record();
    }
    Series series = session.series(case_text, plan.batch);
    std::vector<double> spans;
    for (long i = 0; i < plan.samples; ++i)
        spans.push_back(session.rank == 0 ? static_cast<double>(stamps[i + 1] - stamps[i]) : 1e9);
    series.samples = per_operation(session, spans, plan.batch, case_text);
    return series;
}

// Samples that all ranks start together; the slowest rank's own time counts (Hoefler and Belli,
// SC'15, rule 10). Returns nanoseconds per operation, on rank 0, and every rank's starts.
template <class Operation>
Series sample_together(Session& session, Operation operation, bool delays,
                       const std::string& case_text) {
    const Plan plan = plan_case(session, operation, delays);
    Stamps stamps(2 * (plan.warmup + plan.samples));
    for (long i = 0; i < plan.warmup + plan.samples; ++i) {
        start_together(session.rank, session.ranks);
        stamps.record();
        operation(plan.batch);
        stamps.record();
    }
    Series series = session.series(case_text, plan.batch);
    std::vector<double> own, slowest(static_cast<std::size_t>(plan.samples));
    for (long i = plan.warmup; i < plan.warmup + plan.samples; ++i) {
        own.push_back(static_cast<double>(stamps[2 * i + 1] - stamps[2 * i]));
        series.starts.push_back(stamps[2 * i]);
    }
    MPI_Allreduce(own.data(), slowest.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    series.samples = per_operation(session, slowest, plan.batch, case_text);
    return series;
}

}  // namespace paribus
