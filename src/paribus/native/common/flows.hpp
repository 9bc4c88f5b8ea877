// Streams of messages from several ranks to one, on several connections each: over MPI, where a
// connection is a tag with messages under way, or over TCP sockets of their own. And a line of
// round trips between two ranks over the same.
#pragma once

#include <mpi.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "sockets.hpp"

namespace paribus {

constexpr int receiver_rank = 0;
constexpr int line_bytes = 8;
constexpr int stop_tag = 90, total_tag = 91, line_tag = 92, first_flow_tag = 100;

// What both ends know of the flows of one case. Each flow is received into a block of its own,
// all connections of it into the same; `messages` is how many of them a block holds.
struct Streams {
    int rank;
    std::vector<int> senders;
    int connections;
    std::size_t size;  // bytes of a message
    unsigned char* out;
    unsigned char* in;
    std::size_t block_bytes;

    unsigned char* block(std::size_t sender) const { return in + sender * block_bytes; }
    bool sends() const { return std::count(senders.begin(), senders.end(), rank) > 0; }
    std::size_t lanes() const {  // connections that this rank is at an end of
        const std::size_t flows = rank == receiver_rank ? senders.size() : sends() ? 1 : 0;
        return flows * each();
    }
    std::size_t each() const { return static_cast<std::size_t>(connections); }
    std::size_t sender_of(std::size_t lane) const { return lane / each(); }
    int connection_of(std::size_t lane) const { return static_cast<int>(lane % each()); }
};

// A library may take any number of small messages before one has left: so a sender has a window of
// messages under way on each connection, and the receiver answers each half of it.
class MpiFlows {
public:
    explicit MpiFlows(Streams s) : streams(std::move(s)) {}
    const Streams streams;
    static std::size_t messages(std::size_t) { return 1; }  // of one block
    std::string open(const std::string&) { return ""; }

    // The receiver, until ended(): gives every message that has come to `got(sender, bytes)`.
    template <class Got>
    void pull(Got got) {
        if (heads_.empty()) start([] {});
        for (int i = tested(); i-- > 0;) {
            const auto at = static_cast<std::size_t>(i);
            const auto lane = static_cast<std::size_t>(places_[at]);
            int bytes = 0;
            MPI_Get_count(&statuses_[at], MPI_BYTE, &bytes);
            if (bytes > 0) got(streams.sender_of(lane), static_cast<std::size_t>(bytes));
            next(lane, bytes > 0);  // an empty message says that none follows in its place
        }
    }
    void stop() {
        for (const int sender : streams.senders)
            MPI_Send(nullptr, 0, MPI_BYTE, sender, stop_tag, MPI_COMM_WORLD);
    }
    bool ended() const { return !open_; }
    // Bytes of a flow that tell its rate: only whole messages are seen, and all connections of a
    // sender may end theirs at once.
    std::size_t least() const {
        return streams.size * std::max<std::size_t>(4, 2 * streams.each());
    }
    // How many bytes of a sender's block its messages have reached.
    std::size_t filled(std::size_t) const { return streams.size; }

    // A sender: sends what can be sent, each message after `before()`, and returns false once the
    // receiver has had enough.
    template <class Before>
    bool push(Before before) {
        if (heads_.empty()) {
            start(before);
            for (std::size_t lane = 0; lane < streams.lanes(); ++lane) listen(lane);
            MPI_Irecv(nullptr, 0, MPI_BYTE, receiver_rank, stop_tag, MPI_COMM_WORLD,
                      &heads_.back());
        }
        bool more = true;
        for (int i = tested(); i-- > 0;) {
            const auto lane = static_cast<std::size_t>(places_[static_cast<std::size_t>(i)]);
            if (lane == streams.lanes()) {
                more = false;
                continue;
            }
            MPI_Waitall(half(), queues_[lane].data() + oldest_[lane], MPI_STATUSES_IGNORE);
            for (int one = 0; one < half(); ++one) {
                before();
                next(lane, true);
            }
            listen(lane);
        }
        return more;
    }
    // Then sends an empty message for each that the receiver still waits for.
    void end() {
        for (std::size_t lane = 0; lane < streams.lanes(); ++lane) {
            MPI_Wait(&heads_[lane], MPI_STATUS_IGNORE);
            listen(lane);
            MPI_Wait(&heads_[lane], MPI_STATUS_IGNORE);
            MPI_Waitall(depth_, queues_[lane].data(), MPI_STATUSES_IGNORE);
            for (int i = 0; i < depth_; ++i)
                MPI_Send(nullptr, 0, MPI_BYTE, receiver_rank, tag(lane), MPI_COMM_WORLD);
        }
    }

    void send_one(std::size_t lane) const {
        MPI_Send(streams.out, count(), MPI_BYTE, receiver_rank, tag(lane), MPI_COMM_WORLD);
    }
    void receive_one(std::size_t lane) const {
        const std::size_t sender = streams.sender_of(lane);
        MPI_Recv(streams.block(sender), count(), MPI_BYTE, streams.senders[sender], tag(lane),
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

private:
    static constexpr int most = 64;
    int count() const { return static_cast<int>(streams.size); }
    int half() const { return depth_ / 2; }
    bool receives() const { return streams.rank == receiver_rank; }
    int tag(std::size_t lane) const { return first_flow_tag + streams.connection_of(lane); }
    int answer_tag(std::size_t lane) const { return tag(lane) + 64; }

    // How many of the heads are done; `places_` says which.
    int tested() {
        int found = 0;
        MPI_Testsome(static_cast<int>(heads_.size()), heads_.data(), &found, places_.data(),
                     statuses_.data());
        open_ = found != MPI_UNDEFINED;
        return open_ ? found : 0;
    }
    template <class Before>
    void start(Before before) {
        const std::size_t lanes = streams.lanes();
        queues_.resize(lanes);
        oldest_.assign(lanes, 0);
        heads_.assign(lanes + 1, MPI_REQUEST_NULL);
        places_.resize(lanes + 1);
        statuses_.resize(lanes + 1);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            for (int i = 0; i < depth_; ++i) {
                before();
                queues_[lane][static_cast<std::size_t>(i)] = posted(lane);
            }
            if (receives()) heads_[lane] = queues_[lane].front();
        }
    }
    MPI_Request posted(std::size_t lane) const {
        MPI_Request request;
        const std::size_t sender = streams.sender_of(lane);
        if (receives())
            MPI_Irecv(streams.block(sender), count(), MPI_BYTE, streams.senders[sender], tag(lane),
                      MPI_COMM_WORLD, &request);
        else
            MPI_Isend(streams.out, count(), MPI_BYTE, receiver_rank, tag(lane), MPI_COMM_WORLD,
                      &request);
        return request;
    }
    void listen(std::size_t lane) {
        MPI_Irecv(nullptr, 0, MPI_BYTE, receiver_rank, answer_tag(lane), MPI_COMM_WORLD,
                  &heads_[lane]);
    }
    // The oldest message of a lane is done: another takes its place, or none, and the one after
    // it is the oldest. The receiver answers where half a window is full.
    void next(std::size_t lane, bool again) {
        auto& queue = queues_[lane];
        queue[oldest_[lane]] = again ? posted(lane) : MPI_REQUEST_NULL;
        oldest_[lane] = (oldest_[lane] + 1) % static_cast<std::size_t>(depth_);
        if (!receives()) return;
        heads_[lane] = queue[oldest_[lane]];
        if (again && oldest_[lane] % static_cast<std::size_t>(half()) == 0)
            MPI_Send(nullptr, 0, MPI_BYTE, streams.senders[streams.sender_of(lane)],
                     answer_tag(lane), MPI_COMM_WORLD);
    }

    // A window: 256 KiB, but from 2 to 64 messages.
    const int depth_ =
        static_cast<int>(std::clamp<std::size_t>((128u << 10) / streams.size, 1, most / 2)) * 2;
    std::vector<std::array<MPI_Request, most>> queues_;
    std::vector<std::size_t> oldest_;
    // The receiver's oldest message of each lane, or a sender's answer that comes next; the stop.
    std::vector<MPI_Request> heads_;
    std::vector<int> places_;
    std::vector<MPI_Status> statuses_;
    bool open_ = true;
};

// Ranks that wait here sleep in the kernel, as programs that use sockets do.
class SocketFlows {
public:
    explicit SocketFlows(Streams s) : streams(std::move(s)) {}
    const Streams streams;
    static std::size_t messages(std::size_t size) {
        return std::max<std::size_t>(1, (64u << 10) / size);
    }
    std::string open(const std::string& address) {
        const std::string wrong =
            links_.open(streams.rank, receiver_rank, streams.senders, streams.connections, address);
        moved_.assign(streams.lanes(), 0);
        held_.assign(streams.lanes(), 0);
        events_.resize(streams.lanes() + 1);
        waiting_ = Socket(epoll_create1(EPOLL_CLOEXEC));
        for (std::size_t lane = 0; lane < streams.lanes() && wrong.empty(); ++lane) {
            epoll_event event{};
            event.events = streams.rank == receiver_rank ? EPOLLIN : EPOLLIN | EPOLLOUT;
            event.data.u64 = lane;
            epoll_ctl(waiting_.fd(), EPOLL_CTL_ADD, links_.all[lane].fd(), &event);
        }
        return wrong;
    }

    template <class Got>
    void pull(Got got) {
        const int found =
            epoll_wait(waiting_.fd(), events_.data(), static_cast<int>(streams.lanes()), 10);
        for (int i = 0; i < found; ++i) {
            const auto lane =
                static_cast<std::size_t>(events_[static_cast<std::size_t>(i)].data.u64);
            const std::size_t sender = streams.sender_of(lane);
            const std::size_t at = moved_[lane] % streams.block_bytes;
            const ssize_t n = recv(links_.all[lane].fd(), streams.block(sender) + at,
                                   streams.block_bytes - at, MSG_DONTWAIT);
            if (n <= 0) continue;
            moved_[lane] += static_cast<std::size_t>(n);
            got(sender, static_cast<std::size_t>(n));
        }
    }
    // The word goes back on the first connection of each sender, the totals come through MPI: how
    // much there is to receive cannot be read from a stream of bytes.
    void stop() {
        totals_.resize(streams.lanes());
        for (std::size_t s = 0; s < streams.senders.size(); ++s) {
            links_.all[s * streams.each()].send_all("", 1);
            pending_.emplace_back();
            MPI_Irecv(totals_.data() + s * streams.each(), streams.connections, MPI_UINT64_T,
                      streams.senders[s], total_tag, MPI_COMM_WORLD, &pending_.back());
        }
    }
    bool ended() {
        int done = 0;
        MPI_Testall(static_cast<int>(pending_.size()), pending_.data(), &done, MPI_STATUSES_IGNORE);
        return done && std::equal(moved_.begin(), moved_.end(), totals_.begin());
    }
    std::size_t least() const { return 2 * streams.size; }
    std::size_t filled(std::size_t sender) const {
        const auto first =
            moved_.begin() + static_cast<std::ptrdiff_t>(sender) * streams.connections;
        return std::min<std::size_t>(streams.block_bytes,
                                     *std::max_element(first, first + streams.connections));
    }

    template <class Before>
    bool push(Before before) {
        bool any = false;
        for (std::size_t lane = 0; lane < streams.lanes(); ++lane) {
            const std::size_t at = moved_[lane] % streams.size;
            if (at == 0 && !held_[lane]) before();
            const ssize_t n = send(links_.all[lane].fd(), streams.out + at, streams.size - at,
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
            held_[lane] = n < 0 && at == 0;
            if (n < 0) continue;
            moved_[lane] += static_cast<std::size_t>(n);
            any = true;
        }
        if (any && ++pushes_ % 64 != 0) return true;
        if (!any) epoll_wait(waiting_.fd(), events_.data(), static_cast<int>(events_.size()), 10);
        char word = 0;
        return recv(links_.all.front().fd(), &word, 1, MSG_DONTWAIT) != 1;
    }
    void end() {
        for (std::size_t lane = 0; lane < streams.lanes(); ++lane) {
            const std::size_t at = moved_[lane] % streams.size;
            if (at == 0) continue;
            links_.all[lane].send_all(streams.out + at, streams.size - at);
            moved_[lane] += streams.size - at;
        }
        MPI_Send(moved_.data(), streams.connections, MPI_UINT64_T, receiver_rank, total_tag,
                 MPI_COMM_WORLD);
    }

    void send_one(std::size_t lane) const { links_.all[lane].send_all(streams.out, streams.size); }
    void receive_one(std::size_t lane) const {
        links_.all[lane].receive_all(streams.block(streams.sender_of(lane)), streams.size);
    }

private:
    Connections links_;
    Socket waiting_;
    std::vector<std::uint64_t> moved_, totals_;  // bytes of each lane
    std::vector<epoll_event> events_;
    std::vector<MPI_Request> pending_;
    std::vector<char> held_;  // of each lane: its next message has been prepared already
    unsigned pushes_ = 0;
};

// Round trips of small messages between two ranks, which end when the first says so.
class Line {
public:
    Line(int rank, int first, int second) : other_(rank == first ? second : first) {}

    // Over a socket where an `address` of the second is given. Collective.
    std::string open(int rank, int first, int second, const std::string& address) {
        return links_.open(rank, second, {first}, 1, address);
    }
    void send(const unsigned char* data) {
        if (links_.all.empty()) {
            MPI_Send(data, line_bytes, MPI_BYTE, other_, line_tag, MPI_COMM_WORLD);
            return;
        }
        frame_[0] = 1;
        std::memcpy(frame_ + 1, data, line_bytes);
        links_.all[0].send_all(frame_, sizeof frame_);
    }
    // False: no message follows, for now.
    bool receive(unsigned char* data) {
        if (!links_.all.empty()) {
            if (!links_.all[0].receive_all(frame_, sizeof frame_) || frame_[0] == 0) return false;
            std::memcpy(data, frame_ + 1, line_bytes);
            return true;
        }
        MPI_Status status;
        int bytes = 0;
        MPI_Recv(data, line_bytes, MPI_BYTE, other_, line_tag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        return bytes > 0;
    }
    void end() {
        frame_[0] = 0;
        if (!links_.all.empty()) links_.all[0].send_all(frame_, sizeof frame_);
        else MPI_Send(nullptr, 0, MPI_BYTE, other_, line_tag, MPI_COMM_WORLD);
    }

private:
    int other_;
    unsigned char frame_[1 + line_bytes] = {};  // behind a byte that says whether it is a message
    Connections links_;
};

}  // namespace paribus
