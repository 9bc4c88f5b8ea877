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
        Series series =
            !session_.like(Like::paribus)
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
    void send() {
        for (auto& request : requests_)
            MPI_Isend(out_.data, static_cast<int>(size_), MPI_BYTE, other_, 1, MPI_COMM_WORLD,
                      &request);
        MPI_Waitall(window, requests_, MPI_STATUSES_IGNORE);
        MPI_Recv(answer_, answer_bytes(), MPI_BYTE, other_, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void receive() {
        for (auto& request : requests_)
            MPI_Irecv(in_.data, static_cast<int>(size_), MPI_BYTE, other_, 1, MPI_COMM_WORLD,
                      &request);
        MPI_Waitall(window, requests_, MPI_STATUSES_IGNORE);
        MPI_Send(answer_, answer_bytes(), MPI_BYTE, other_, 2, MPI_COMM_WORLD);
    }
    void exchange() {
        for (auto& request : requests_)
            MPI_Irecv(in_.data, static_cast<int>(size_), MPI_BYTE, other_, 1, MPI_COMM_WORLD,
                      &request);
        for (auto& request : sends_)
            MPI_Isend(out_.data, static_cast<int>(size_), MPI_BYTE, other_, 1, MPI_COMM_WORLD,
                      &request);
        MPI_Waitall(window, sends_, MPI_STATUSES_IGNORE);
        MPI_Waitall(window, requests_, MPI_STATUSES_IGNORE);
        if (!session_.like(Like::imb)) return;
        if (low_) MPI_Recv(answer_, 1, MPI_BYTE, other_, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Send(answer_, 1, MPI_BYTE, other_, 2, MPI_COMM_WORLD);
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
    MPI_Request requests_[window], sends_[window];
    unsigned char answer_[4] = {};
    unsigned salt_ = 0;
};

}  // namespace paribus
