// What the kernels share whose messages go between pairs of ranks, one by one or in windows.
#pragma once

#include "cases.hpp"

namespace paribus {

// Rank r below half of the ranks is paired with r + half.
struct Pair : Case {
    using Case::Case;
    const bool low = rank < ranks / 2;
    const int other = low ? rank + ranks / 2 : rank - ranks / 2;

    void prepare() const {
        fill(out.data, size, rank, other, salt);
        poison(in.data, size, other, rank, salt);
    }
    std::size_t expected() const { return size; }
    long wrong() const { return first_wrong(in.data, size, other, rank, salt); }
};

// One operation is a window: this many messages under way at once, then one answer, so that the
// time ends when the last message has been received. All messages of a rank use one buffer, which
// therefore stays in the cache (as in OSU's and Intel's programs).
constexpr int window = 64;

// The lower rank of a pair sends; with both_ways() in place of call(), each of the two does.
struct Windows : Pair {
    using Pair::Pair;

    // The description of a kernel of windows, but for its name and summary.
    static constexpr Spec windows(const char* name, const char* summary) {
        Spec spec;
        spec.name = name;
        spec.summary = summary;
        spec.ranks = Ranks::two;
        spec.metric = "bandwidth";
        spec.unit = "MB/s";
        spec.pairs = true;
        spec.start = Start::flow;
        spec.osu_iterations = 100;
        spec.osu_warmup = 10;
        spec.osu_large_iterations = 20;
        spec.osu_large_warmup = 2;
        return spec;
    }
    std::size_t expected() const { return low ? 0 : size; }

    void call(long) {
        if (low) {
            start_sends(requests);
            MPI_Waitall(window, requests, statuses());
            MPI_Recv(answer, answer_bytes(), MPI_BYTE, other, 2, comm, MPI_STATUS_IGNORE);
        } else {
            start_receives(requests);
            MPI_Waitall(window, requests, statuses());
            MPI_Send(answer, answer_bytes(), MPI_BYTE, other, 2, comm);
        }
    }
    void both_ways() {
        start_receives(requests);
        start_sends(requests + window);
        if (!session.like(Like::imb)) {
            // As in osu_bibw, the lower rank waits for its sends first, the other for its receives.
            MPI_Waitall(window, requests + (low ? window : 0), statuses());
            MPI_Waitall(window, requests + (low ? 0 : window), statuses());
            return;
        }
        MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);  // Biband: both in one wait
        if (low) MPI_Recv(answer, 1, MPI_BYTE, other, 2, comm, MPI_STATUS_IGNORE);
        else MPI_Send(answer, 1, MPI_BYTE, other, 2, comm);
    }

private:
    // Intel's programs can walk through a buffer larger than the cache; without that option they
    // still divide for every message, which counts at 8 bytes.
    unsigned char* place(const Buffer& buffer, int i) const {
        return session.like(Like::imb) ? buffer.data + i % places * stride : buffer.data;
    }
    // OSU's programs and Intel's Uniband have every status written, which counts at 8 bytes.
    MPI_Status* statuses() { return session.like(Like::paribus) ? MPI_STATUSES_IGNORE : written; }
    void start_sends(MPI_Request* into) {
        for (int i = 0; i < window; ++i)
            MPI_Isend(place(out, i), count, MPI_BYTE, other, 1, comm, into + i);
    }
    void start_receives(MPI_Request* into) {
        for (int i = 0; i < window; ++i)
            MPI_Irecv(place(in, i), count, MPI_BYTE, other, 1, comm, into + i);
    }
    int answer_bytes() const { return session.like(Like::paribus) ? 4 : 1; }

    volatile int places = 1, stride = 0;
    MPI_Request requests[2 * window];
    MPI_Status written[2 * window];
    unsigned char answer[4] = {};
};

}  // namespace paribus
