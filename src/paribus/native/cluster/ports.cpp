// Which TCP connections nodes can open to each other: `paribus cluster` starts it on every node.
//
// ports WORD INDEX FIRST LAST: listens on three ports of FIRST..LAST (0 0: the first free one from
// 1024, as Open MPI's ranks take, and two of the kernel's choice), and prints
// `listening PORT PORT PORT`. Then it reads lines `INDEX ADDRESS PORT PORT PORT`, one for each
// other node, and `go MILLISECONDS`. It opens a connection to each port, sends the WORD, its own
// index and 16 KiB (more than a frame), and waits for as much with the index of the other. It
// prints `to INDEX PORT ok|refused|silent|stuck|stranger|ERRNO` for each and `done`; it answers
// others until its standard input ends.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t SIZE = 16384;

struct Talk {
    int fd;
    bool ours;  // we opened it
    bool connected;
    int peer, port;
    size_t sent, got;
    std::string out, in;
};

struct Peer {
    int index;
    std::string address;
    int port[3];
};

std::vector<Talk> talks;
std::string word;
int own;

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

std::string message() {
    std::string text = word + " " + std::to_string(own) + "\n";
    text.resize(SIZE, '.');
    return text;
}

int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<unsigned short>(port));
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) || listen(fd, 1024)) {
        if (fd >= 0) close(fd);
        return -1;
    }
    return fd;
}

int port_of(int fd) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    return ntohs(at.sin_port);
}

std::vector<int> listeners(int first, int last) {
    std::vector<int> found;
    if (!first) {
        for (int port = 1024; port < 65536 && found.empty(); ++port)
            if (int fd = listen_on(port); fd >= 0) found.push_back(fd);
        for (int i = 0; i < 2; ++i)
            if (int fd = listen_on(0); fd >= 0) found.push_back(fd);
        return found;
    }
    // From the begin, the middle and the end of the range.
    const int starts[] = {first, first + (last - first) / 2, last};
    for (int start : starts)
        for (int i = 0; i <= last - first; ++i) {
            int port = first + (start - first + i) % (last - first + 1);
            if (int fd = listen_on(port); fd >= 0) {
                found.push_back(fd);
                break;
            }
        }
    return found;
}

void say(const Talk& talk, const char* what) {
    if (talk.ours) printf("to %d %d %s\n", talk.peer, talk.port, what);
}

void begin(const Peer& peer, int port) {
    Talk talk{-1, true, false, peer.index, port, 0, 0, message(), ""};
    talk.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<unsigned short>(port));
    inet_pton(AF_INET, peer.address.c_str(), &at.sin_addr);
    if (talk.fd < 0 ||
        (connect(talk.fd, reinterpret_cast<sockaddr*>(&at), sizeof at) && errno != EINPROGRESS)) {
        say(talk, errno == ECONNREFUSED ? "refused" : strerror(errno));
        if (talk.fd >= 0) close(talk.fd);
        return;
    }
    talks.push_back(talk);
}

// Returns whether the talk is over.
bool go_on(Talk& talk, short events) {
    if (talk.ours && !talk.connected && (events & (POLLOUT | POLLERR | POLLHUP))) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(talk.fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) {
            say(talk, error == ECONNREFUSED ? "refused"
                      : error == ETIMEDOUT  ? "silent"
                                            : strerror(error));
            return true;
        }
        talk.connected = true;
    }
    if (talk.connected && talk.sent < talk.out.size()) {
        ssize_t n =
            send(talk.fd, talk.out.data() + talk.sent, talk.out.size() - talk.sent, MSG_NOSIGNAL);
        if (n > 0) talk.sent += static_cast<size_t>(n);
    }
    char buffer[SIZE];
    for (;;) {
        ssize_t n = recv(talk.fd, buffer, sizeof buffer, 0);
        if (n > 0) {
            if (talk.in.size() < 64) talk.in.append(buffer, static_cast<size_t>(n));
            talk.got += static_cast<size_t>(n);
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (talk.ours && talk.got < SIZE) say(talk, talk.got ? "stranger" : "closed");
        return true;
    }
    if (talk.got < SIZE) return false;
    const bool known = talk.in.compare(0, word.size() + 1, word + " ") == 0;
    if (talk.ours) {
        const bool right = known && atoi(talk.in.c_str() + word.size() + 1) == talk.peer;
        say(talk, right ? "ok" : "stranger");
        return true;
    }
    if (!known) return true;
    if (talk.out.empty()) {
        talk.out = message();
        return go_on(talk, 0);
    }
    return false;
}

void serve(const std::vector<int>& listening) {
    std::vector<Peer> peers;
    std::string line;
    double deadline = 0;
    bool at_it = false;
    for (;;) {
        std::vector<pollfd> polls{{0, POLLIN, 0}};
        for (int fd : listening) polls.push_back({fd, POLLIN, 0});
        const size_t first = polls.size();
        for (const Talk& talk : talks) {
            const bool writes =
                talk.ours ? talk.sent < talk.out.size() : !talk.out.empty() && talk.sent < SIZE;
            polls.push_back({talk.fd, static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
        }
        poll(polls.data(), polls.size(), at_it ? 100 : 1000);
        for (size_t i = talks.size(); i-- > 0;)
            if (polls[first + i].revents && go_on(talks[i], polls[first + i].revents)) {
                close(talks[i].fd);
                talks.erase(talks.begin() + static_cast<long>(i));
            }
        for (size_t i = 1; i < first; ++i) {
            int fd;
            while ((polls[i].revents & POLLIN) &&
                   (fd = accept4(polls[i].fd, nullptr, nullptr, SOCK_NONBLOCK)) >= 0)
                talks.push_back({fd, false, true, 0, 0, 0, 0, "", ""});
        }
        if (at_it) {
            size_t open = 0;
            const bool late = now() > deadline;
            for (size_t i = talks.size(); i-- > 0;) {
                if (!talks[i].ours) continue;
                if (!late) {
                    ++open;
                    continue;
                }
                say(talks[i], talks[i].connected ? "stuck" : "silent");
                close(talks[i].fd);
                talks.erase(talks.begin() + static_cast<long>(i));
            }
            if (!open) {
                at_it = false;
                puts("done");
                fflush(stdout);
            }
        }
        if (!polls[0].revents) continue;
        char buffer[4096];
        const ssize_t n = read(0, buffer, sizeof buffer);
        if (n <= 0) return;
        line.append(buffer, static_cast<size_t>(n));
        for (size_t end; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1)) {
            const std::string one = line.substr(0, end);
            char address[64];
            Peer peer{};
            int wait;
            if (sscanf(one.c_str(), "go %d", &wait) == 1) {
                deadline = now() + wait * 1e-3;
                at_it = true;
                for (const Peer& each : peers)
                    for (int port : each.port)
                        if (port) begin(each, port);
            } else if (sscanf(one.c_str(), "%d %63s %d %d %d", &peer.index, address, &peer.port[0],
                              &peer.port[1], &peer.port[2]) >= 3) {
                peer.address = address;
                peers.push_back(peer);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    word = argv[1];
    own = atoi(argv[2]);
    rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    const std::vector<int> listening = listeners(atoi(argv[3]), atoi(argv[4]));
    printf("listening");
    for (int fd : listening) printf(" %d", port_of(fd));
    puts("");
    fflush(stdout);
    serve(listening);
}
