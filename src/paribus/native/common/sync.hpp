// Starting together, waiting quietly, and reading the other ranks' clocks.
#pragma once

#include <cstdint>

namespace paribus {

// A dissemination barrier of our own: the same steps whatever the MPI library's barrier does, so
// that two libraries are compared from the same start. After log2(ranks) rounds every rank has
// heard, directly or not, from every other.
void start_together(int rank, int ranks);

// Returns on all ranks once rank 0 has come here; meanwhile the others sleep instead of polling,
// so that they disturb nothing that rank 0 measures.
void wait_quietly_for_rank_0(int rank);

// The value that rank 0 has; what the others have does not matter. A sum, because one MPI_Bcast
// makes every later MPI_Allreduce of 8 B over shared memory 13 % slower in Open MPI 5.0
// (docs/fidelity.md), and a kernel must not change what it measures. Collective.
double of_rank_0(double value, int rank);

// Keeps every core busy for 5 ms. After the state probe rank 0 comes from wide vectors and cold
// caches, the others from sleep: for about 1 ms, messages take longer (docs/fidelity.md).
void settle();

// Returns once all ranks have come; who waits sleeps, and so takes nothing from the pairs that are
// still measured. Collective.
void meet_quietly();

// How far this rank's clock was ahead of rank 0's, and when (by this rank's clock).
struct Offset {
    std::int64_t ahead_ns = 0;
    std::int64_t at = 0;
};

// From the fastest of 20 round trips with rank 0: the reply's stamp then lies half-way between the
// question's and the answer's, give or take half that round trip (Cristian 1989). Collective.
Offset measure_offset(int rank, int ranks);

// Nanoseconds since `origin`, a reading of rank 0's clock, at which this rank's clock showed
// `reading`; the drift between the two measurements of the offset is taken as even.
double since(std::int64_t origin, std::int64_t reading, const Offset& start, const Offset& end);

}  // namespace paribus
