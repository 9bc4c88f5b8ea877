// TCP connections between ranks, beside MPI's own: who listens, who connects, and the proof that
// both belong to this launch.
#pragma once

#include <mpi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"

namespace paribus {

class Socket {
public:
    explicit Socket(int fd = -1) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Socket() {
        if (fd_ >= 0) close(fd_);
    }
    int fd() const { return fd_; }

    // Returns whether `event` came within `ms`.
    bool wait(short event, int ms) const {
        pollfd one{fd_, event, 0};
        return poll(&one, 1, ms) > 0;
    }
    // Both wait as long as it takes, and return whether all bytes went; false: the other end
    // closed.
    bool send_all(const void* data, std::size_t bytes) const {
        const auto* at = static_cast<const unsigned char*>(data);
        while (bytes > 0) {
            const ssize_t n = send(fd_, at, bytes, MSG_NOSIGNAL);
            if (n < 0 && errno != EINTR) return false;
            at += std::max<ssize_t>(n, 0);
            bytes -= static_cast<std::size_t>(std::max<ssize_t>(n, 0));
        }
        return true;
    }
    bool receive_all(void* data, std::size_t bytes) const {
        auto* at = static_cast<unsigned char*>(data);
        while (bytes > 0) {
            const ssize_t n = recv(fd_, at, bytes, 0);
            if (n == 0 || (n < 0 && errno != EINTR)) return false;
            at += std::max<ssize_t>(n, 0);
            bytes -= static_cast<std::size_t>(std::max<ssize_t>(n, 0));
        }
        return true;
    }

private:
    int fd_;
};

// Connections from some ranks to one, kept by the ranks that are at an end of them.
class Connections {
public:
    // Opens `each` connections from every client to `server`, whom they reach at `address`. This
    // rank's are then in `all`: a client's own, or the server's, client after client. Returns what
    // is wrong. Collective.
    std::string open(int rank, int server, const std::vector<int>& clients, int each,
                     const std::string& address) {
        each_ = each;
        Offer offer{std::random_device()() * 0x100000001ULL ^ std::random_device()(), 0};
        Socket listener;
        std::string wrong;
        if (rank == server) {
            listener = listening(offer.port);
            if (listener.fd() < 0) wrong = std::string("cannot listen: ") + std::strerror(errno);
            all.resize(clients.size() * static_cast<std::size_t>(each));
        }
        MPI_Bcast(&offer, sizeof offer, MPI_BYTE, server, MPI_COMM_WORLD);
        const auto place = std::find(clients.begin(), clients.end(), rank) - clients.begin();
        if (static_cast<std::size_t>(place) < clients.size() && offer.port != 0)
            wrong = connect_all(offer, static_cast<std::int32_t>(place), address);
        // Who listens takes what has come while others still connect: a queue holds only so many.
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        for (int done = 0; !done;) {
            if (listener.fd() >= 0) accept_one(listener, offer.word, 1);
            else usleep(1000);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        while (listener.fd() >= 0 && !complete() && accept_one(listener, offer.word, 2000)) {
        }
        if (listener.fd() >= 0 && !complete() && wrong.empty())
            wrong =
                "not all connections of the others arrived at port " + std::to_string(offer.port);
        return wrong;
    }

    std::vector<Socket> all;

private:
    struct Offer {
        std::uint64_t word;
        int port;
    };
    struct Hello {
        std::uint64_t word;
        std::int32_t client, connection;
    };

    // On every address, for nobody knows here by which one the others come.
    static Socket listening(int& port) {
        for (const int family : {AF_INET6, AF_INET}) {
            Socket made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
            const int no = 0;
            sockaddr_in6 at{};
            at.sin6_family = static_cast<sa_family_t>(family);
            socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
            if (family == AF_INET6)
                setsockopt(made.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
            auto* const name = reinterpret_cast<sockaddr*>(&at);
            if (made.fd() < 0 || bind(made.fd(), name, size) != 0 || listen(made.fd(), 4096) != 0)
                continue;
            getsockname(made.fd(), name, &size);
            port = ntohs(at.sin6_port);  // it lies where an IPv4 address has it too
            return made;
        }
        return Socket();
    }

    std::string connect_all(const Offer& offer, std::int32_t client, const std::string& address) {
        const std::string port = std::to_string(offer.port);
        const auto failed = [&](const std::string& why) {
            return "cannot connect to " + address + ", port " + port + ": " + why +
                   "; --receiver names another address of rank 0";
        };
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        const int status = getaddrinfo(address.c_str(), port.c_str(), &hints, &found);
        if (status != 0) return failed(gai_strerror(status));
        std::string wrong;
        for (std::int32_t c = 0; c < each_ && wrong.empty(); ++c) {
            for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
                wrong = connect_one(*at);
                if (wrong.empty()) break;
            }
            const Hello hello{offer.word, client, c};
            if (wrong.empty() && !all.back().send_all(&hello, sizeof hello))
                wrong = "it was closed at once";
        }
        freeaddrinfo(found);
        return wrong.empty() ? "" : failed(wrong);
    }

    std::string connect_one(const addrinfo& at) {
        Socket made(socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const timeval patience{10, 0}, none{0, 0};
        // A send time-out also limits connect().
        setsockopt(made.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(made.fd(), at.ai_addr, at.ai_addrlen) != 0)
            return errno == EINPROGRESS ? "no answer for 10 s" : std::strerror(errno);
        setsockopt(made.fd(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
        send_at_once(made);
        all.push_back(std::move(made));
        return "";
    }

    // Takes one connection if it comes within `ms`, and closes one that is not of this launch.
    bool accept_one(const Socket& listener, std::uint64_t word, int ms) {
        if (!listener.wait(POLLIN, ms)) return false;
        Socket made(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
        const timeval patience{2, 0}, none{0, 0};
        setsockopt(made.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        Hello hello{};
        if (!made.receive_all(&hello, sizeof hello) || hello.word != word || hello.client < 0 ||
            hello.connection < 0 || hello.connection >= each_)
            return true;
        const auto at = static_cast<std::size_t>(hello.client) * static_cast<std::size_t>(each_) +
                        static_cast<std::size_t>(hello.connection);
        if (at >= all.size()) return true;
        setsockopt(made.fd(), SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
        send_at_once(made);
        all[at] = std::move(made);
        return true;
    }
    bool complete() const {
        return std::all_of(all.begin(), all.end(), [](const Socket& s) { return s.fd() >= 0; });
    }
    static void send_at_once(const Socket& socket) {
        const int yes = 1;
        setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }

    int each_ = 0;
};

}  // namespace paribus
