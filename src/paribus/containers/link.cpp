// link DELAY_NS LOSS whole|cut UPLINK PORT...: a switch between the network devices PORT..., in
// place of a bridge, for kernels without netem. A frame between two ports leaves DELAY_NS after it
// came; the share LOSS of them is lost. To and from UPLINK, the fabric's own port, frames pass at
// once.
//
// It receives by packet sockets, which an ordinary user may open in a namespace of his own, with
// the kernel's time of arrival, and up to 64 KiB at a time as TCP hands it to the device (a
// virtio_net_hdr says how to cut it); `cut`: the PORTs hand on single frames only. Says `up` when
// it forwards, and ends when descriptor 4 does.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr int alive = 4;
constexpr std::uint32_t lead = 10;     // struct virtio_net_hdr; its header is not C++
constexpr unsigned large = 68 * 1024;  // a slot for 64 KiB of TCP with their headers
constexpr unsigned small = 2 * 1024;   // and for one frame
constexpr unsigned block_bytes(unsigned slot) { return (1u << 20) / slot * slot; }
constexpr std::size_t most_held = 64u << 20;  // bytes that wait on one port
constexpr std::int64_t second = 1000000000, never = INT64_MAX, most_late = 100000;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "paribus: the link in user space: %s: %s\n", what.c_str(),
                 std::strerror(errno));
    std::exit(125);
}

std::int64_t read_clock(clockid_t id) {
    timespec t;
    clock_gettime(id, &t);
    return static_cast<std::int64_t>(t.tv_sec) * second + t.tv_nsec;
}

struct Frame {
    std::int64_t due;  // CLOCK_MONOTONIC
    std::uint32_t bytes;
    std::unique_ptr<char[]> data;  // virtio_net_hdr, then the frame
};

struct Port {
    Port() = default;
    Port(Port&&) = default;
    int socket = -1;
    char* ring = nullptr;
    unsigned slot_bytes = 0, slots = 0, next = 0;
    std::deque<Frame> waiting;
    std::size_t held = 0;
};

// Returns the slot of the ring with the given number.
tpacket2_hdr* slot(const Port& port, unsigned number) {
    return reinterpret_cast<tpacket2_hdr*>(port.ring + std::size_t{number} * port.slot_bytes);
}

void set(int socket, int option, int value, const char* what) {
    if (setsockopt(socket, SOL_PACKET, option, &value, sizeof value) != 0) fail(what);
}

Port open_port(const char* name, unsigned slot_bytes, unsigned blocks) {
    Port port;
    port.slot_bytes = slot_bytes;
    port.socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (port.socket < 0) fail("no packet socket");
    set(port.socket, PACKET_VERSION, TPACKET_V2, "TPACKET_V2");
    set(port.socket, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
    const int size = 4 << 20;  // what waits in the token bucket; refused to ordinary users
    setsockopt(port.socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(port.socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    tpacket_req ring{};
    ring.tp_block_size = block_bytes(slot_bytes);
    ring.tp_block_nr = blocks;
    ring.tp_frame_size = slot_bytes;
    ring.tp_frame_nr = port.slots = blocks * (block_bytes(slot_bytes) / slot_bytes);
    if (setsockopt(port.socket, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0)
        fail("no memory to receive");
    void* memory = mmap(nullptr, std::size_t{port.slots} * slot_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED, port.socket, 0);
    if (memory == MAP_FAILED) fail("no memory to receive");
    port.ring = static_cast<char*>(memory);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(name));
    if (bind(port.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail(name);
    return port;
}

// Returns 6 bytes as a number.
std::uint64_t station(const char* address) {
    std::uint64_t number = 0;
    std::memcpy(&number, address, ETH_ALEN);
    return number;
}

class Switch {
public:
    Switch(std::int64_t delay, double loss, std::vector<Port> ports)
        : delay_(delay), loss_(loss), ports_(std::move(ports)), random_(std::random_device{}()) {}

    // Forwards until descriptor 4 ends.
    void work() {
        std::vector<pollfd> watched{{alive, 0, 0}};
        for (const Port& port : ports_) watched.push_back({port.socket, POLLIN, 0});
        for (unsigned turn = 1;; ++turn) {
            if (turn % 256 == 0 && poll(watched.data(), 1, 0) > 0) return;
            bool moved = false;
            for (std::size_t i = 0; i < ports_.size(); ++i) moved |= receive(i);
            std::int64_t due = never;
            for (std::size_t i = 0; i < ports_.size(); ++i) due = std::min(due, release(i));
            // Sleeps last longer than asked: they are asked to end early by that, then it polls.
            const std::int64_t wake = due - late_;
            const std::int64_t left = wake - read_clock(CLOCK_MONOTONIC);
            if (moved || left <= 0) continue;
            const timespec wait{static_cast<time_t>(left / second),
                                static_cast<long>(left % second)};
            const int ready = ppoll(watched.data(), watched.size(), &wait, nullptr);
            if (ready < 0 && errno != EINTR) fail("ppoll");
            if (watched[0].revents != 0) return;
            for (std::size_t i = 0; i < ports_.size(); ++i)
                if (watched[i + 1].revents & POLLERR) forget_error(ports_[i]);
            const std::int64_t late = read_clock(CLOCK_MONOTONIC) - wake;
            if (ready == 0) late_ = std::min(late_ + (late - late_) / 8, most_late);
        }
    }

private:
    // Takes notice that a port went down, as when its host has ended: else each poll would again.
    static void forget_error(const Port& port) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(port.socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }

    // Takes what has come in on port `from`, and returns whether anything had.
    bool receive(std::size_t from) {
        Port& port = ports_[from];
        bool any = false;
        for (int n = 0; n < 64; ++n) {
            tpacket2_hdr* head = slot(port, port.next);
            if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
            any = true;
            take(from, *head);
            __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
            port.next = (port.next + 1) % port.slots;
        }
        return any;
    }

    void take(std::size_t from, tpacket2_hdr& head) {
        char* at = reinterpret_cast<char*>(&head);
        const auto* origin =
            reinterpret_cast<sockaddr_ll*>(at + TPACKET_ALIGN(sizeof(tpacket2_hdr)));
        if (origin->sll_pkttype == PACKET_OUTGOING || head.tp_snaplen < head.tp_len ||
            head.tp_len < ETH_HLEN)
            return;
        const char* frame = at + head.tp_mac;
        const char* data = frame - lead;
        const std::uint32_t bytes = head.tp_len + lead;
        known_[station(frame + ETH_ALEN)] = from;
        if (from == 0 || to(frame) == 0) return forward(from, data, bytes);
        if (loss_ > 0 && std::uniform_real_distribution<>()(random_) < loss_) return;
        Port& port = ports_[from];
        if (port.held + bytes > most_held) return;
        const std::int64_t came = head.tp_sec * second + head.tp_nsec;
        const std::int64_t age =
            std::clamp<std::int64_t>(read_clock(CLOCK_REALTIME) - came, 0, second / 20);
        Frame kept{read_clock(CLOCK_MONOTONIC) - age + delay_, bytes,
                   std::unique_ptr<char[]>(new char[bytes])};
        std::memcpy(kept.data.get(), data, bytes);
        port.waiting.push_back(std::move(kept));
        port.held += bytes;
    }

    // Sends what is due of port `from`, and returns when the next is.
    std::int64_t release(std::size_t from) {
        Port& port = ports_[from];
        while (!port.waiting.empty()) {
            const Frame& first = port.waiting.front();
            if (first.due > read_clock(CLOCK_MONOTONIC)) return first.due;
            forward(from, first.data.get(), first.bytes);
            port.held -= first.bytes;
            port.waiting.pop_front();
        }
        return never;
    }

    // Returns the port of a frame's receiver, or -1 for all.
    long to(const char* frame) const {
        const auto found = known_.find(station(frame));
        return (frame[0] & 1) || found == known_.end() ? -1 : static_cast<long>(found->second);
    }

    // What a port does not take at once is lost, as at a port that is full.
    void forward(std::size_t from, const char* data, std::uint32_t bytes) {
        const long only = to(data + lead);
        for (std::size_t i = 0; i < ports_.size(); ++i)
            if (i != from && (only < 0 || only == static_cast<long>(i)))
                (void)!send(ports_[i].socket, data, bytes, MSG_DONTWAIT);
    }

    std::int64_t delay_, late_ = 0;
    double loss_;
    std::vector<Port> ports_;
    std::unordered_map<std::uint64_t, std::size_t> known_;
    std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) return 2;
    prctl(PR_SET_TIMERSLACK, 1);
    const unsigned blocks = std::clamp(256u / static_cast<unsigned>(argc), 2u, 16u);
    const unsigned slot_bytes = std::strcmp(argv[3], "cut") == 0 ? small : large;
    std::vector<Port> ports;
    for (int i = 4; i < argc; ++i)
        ports.push_back(open_port(argv[i], i == 4 ? large : slot_bytes, blocks));
    Switch link(std::atoll(argv[1]), std::atof(argv[2]), std::move(ports));
    std::puts("up");
    std::fclose(stdout);
    link.work();
}
