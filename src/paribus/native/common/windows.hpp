// Windows of messages between pairs of ranks: what bandwidth, bibandwidth and message_rate share.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "likes.hpp"
#include "sampling.hpp"

namespace paribus {

// One operation is a window: this many messages under way at once, then one answer, so that the
// time ends when the last message has been received. All messages of a rank use one buffer, which
// therefore stays in the cache (as in OSU's and Intel's programs).
constexpr int window = 64;

class Windows {
public:
    // Rank r below half of the ranks is paired with r + half. With `both_ways` each of the two
    // sends; without, the lower one.
    Windows(Session& s, long bytes, bool both_ways)
        : session_(s),
          both_(both_ways),
          low_(s.rank < s.ranks / 2),
          other_(low_ ? s.rank + s.ranks / 2 : s.rank - s.ranks / 2),
          size_(static_cast<std::size_t>(bytes)),
          where_(Object().add("bytes", bytes).text()),
          out_(size_, s.like(Like::imb)),
          in_(size_, s.like(Like::imb)) {
        s.give_up_if(out_.data && in_.data ? "" : "no memory left at " + where_);
    }

    void operator()(long n) {
        for (long i = 0; i < n; ++i) {
            both_ ? exchange() : low_ ? send() : receive();
            if (low_) session_.delay.spend();
        }
    }

    // Measures, with the data checked after it and once more in a round of new data.
    Series measure(bool together, const Counts& osu_small, const Counts& osu_large) {
        const auto operation = [this](long n) { (*this)(n); };
        const long bytes = static_cast<long>(size_);
        prepare();
        Series series = !session_.like(Like::paribus)
                            ? sample_flow_like(session_, operation,
                                               counts_of(session_, bytes, osu_small, osu_large),
                                               session_.ranks / 2, where_)
                        : together ? sample_together(session_, operation, where_)
                                   : sample_flow(session_, operation, session_.rank == 0, where_);
        check();
        prepare();
        operation(1);
        check();
        return series;
    }

private:
    // Intel's programs can walk through a buffer larger than the cache; without that option they
    // still divide for every message, which counts at 8 bytes.
    unsigned char* place(const Buffer& buffer, int i) const {
        return session_.like(Like::imb) ? buffer.data + i % places_ * stride_ : buffer.data;
    }
    // OSU's programs and Intel's Uniband have every status written, which counts at 8 bytes.
    MPI_Status* statuses() {
        return session_.like(Like::paribus) ? MPI_STATUSES_IGNORE : statuses_;
    }
    void start_sends(MPI_Request* requests) {
        for (int i = 0; i < window; ++i)
            MPI_Isend(place(out_, i), static_cast<int>(size_), MPI_BYTE, other_, 1, session_.comm,
                      requests + i);
    }
    void start_receives(MPI_Request* requests) {
        for (int i = 0; i < window; ++i)
            MPI_Irecv(place(in_, i), static_cast<int>(size_), MPI_BYTE, other_, 1, session_.comm,
                      requests + i);
    }
    void send() {
        start_sends(requests_);
        MPI_Waitall(window, requests_, statuses());
        MPI_Recv(answer_, answer_bytes(), MPI_BYTE, other_, 2, session_.comm, MPI_STATUS_IGNORE);
    }
    void receive() {
        start_receives(requests_);
        MPI_Waitall(window, requests_, statuses());
        MPI_Send(answer_, answer_bytes(), MPI_BYTE, other_, 2, session_.comm);
    }
    void exchange() {
        start_receives(requests_);
        start_sends(requests_ + window);
        if (!session_.like(Like::imb)) {
            MPI_Waitall(window, requests_ + window, statuses());
            MPI_Waitall(window, requests_, statuses());
            return;
        }
        MPI_Waitall(2 * window, requests_, MPI_STATUSES_IGNORE);  // Biband: both in one wait
        if (low_) MPI_Recv(answer_, 1, MPI_BYTE, other_, 2, session_.comm, MPI_STATUS_IGNORE);
        else MPI_Send(answer_, 1, MPI_BYTE, other_, 2, session_.comm);
    }
    int answer_bytes() const { return session_.like(Like::imb) ? 1 : 4; }
    bool receives() const { return both_ || !low_; }

    void prepare() {
        ++salt_;
        fill(out_.data, size_, session_.rank, other_, salt_);
        poison(in_.data, size_, other_, session_.rank, salt_);
    }
    void check() {
        if (receives()) session_.corrupt(in_.data, size_);
        const long wrong =
            receives() ? first_wrong(in_.data, size_, other_, session_.rank, salt_) : -1;
        session_.verify(where_, wrong, receives() ? size_ : 0);
    }

    Session& session_;
    const bool both_, low_;
    const int other_;
    const std::size_t size_;
    const std::string where_;
    Buffer out_, in_;
    volatile int places_ = 1, stride_ = 0;
    MPI_Request requests_[2 * window];
    MPI_Status statuses_[2 * window];
    unsigned char answer_[4] = {};
    unsigned salt_ = 0;
};

}  // namespace paribus
