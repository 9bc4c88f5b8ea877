#include "carried.hpp"

#include <dirent.h>
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <sstream>
#include <vector>

#include "clock.hpp"
#include "machine.hpp"

namespace paribus {

namespace {

// Bytes sent and received so far by each interface of this network namespace, "rdma" for the
// InfiniBand and RoCE ports together (their counters are in units of 4 bytes).
std::map<std::string, double> bytes_so_far() {
    std::map<std::string, double> bytes;
    std::istringstream lines(read_text("/proc/self/net/dev"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::size_t start = line.find_first_not_of(' ');
        double in = 0, out = 0;
        if (std::sscanf(line.c_str() + colon + 1, "%lf %*f %*f %*f %*f %*f %*f %*f %lf", &in,
                        &out) == 2)
            bytes[line.substr(start, colon - start)] = in + out;
    }
    const std::string root = "/sys/class/infiniband";
    const auto names = [](const std::string& path) {
        std::vector<std::string> found;
        if (DIR* directory = opendir(path.c_str())) {
            while (const dirent* entry = readdir(directory))
                if (entry->d_name[0] != '.') found.emplace_back(entry->d_name);
            closedir(directory);
        }
        return found;
    };
    for (const auto& device : names(root))
        for (const auto& port : names(root + "/" + device + "/ports"))
            for (const char* name : {"port_xmit_data", "port_rcv_data"}) {
                const std::string path =
                    root + "/" + device + "/ports/" + port + "/counters/" + name;
                double words = 0;
                if (std::sscanf(read_text(path.c_str()).c_str(), "%lf", &words) == 1)
                    bytes["rdma"] += 4 * words;
            }
    return bytes;
}

// Bytes that each way counted, by the word that is told of it.
using Ways = std::map<std::string, double>;

Ways grown(const std::map<std::string, double>& before) {
    Ways ways;
    for (const auto& [name, bytes] : bytes_so_far()) {
        const auto then = before.find(name);
        if (then == before.end()) continue;
        ways[name == "lo" ? "loopback" : name == "rdma" ? name : "network"] += bytes - then->second;
    }
    return ways;
}

// The least that a way counts which carries 512 KiB there and back, and what may be missing of it.
double least_of(const std::string& way, double size) {
    return 0.9 * (way == "loopback" ? 4 : 2) * size;  // loopback sends and receives every byte
}

// What windows of time told of one way: whether it counted less than was sent while messages went,
// in how many of the quiet windows between it did, and all that it counted.
struct Seen {
    bool refuted = false;
    int quiet = 0;
    double all = 0;
};

}  // namespace

std::string carried(int rank, int other, bool one_machine) {
    constexpr int size = 1 << 19, enough = 10;
    if (other < 1) return "";
    std::vector<char> data(size, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    int more = 1;
    while (rank == other) {
        MPI_Recv(&more, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (more == 0) break;
        MPI_Recv(data.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    if (rank != 0) return "";
    const auto exchange = [&] {
        MPI_Send(&more, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        MPI_Send(data.data(), size, MPI_CHAR, other, 0, MPI_COMM_WORLD);
        MPI_Recv(data.data(), size, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
    exchange();  // connections are made with the first message
    const std::int64_t begin = now_ns();
    std::map<std::string, Seen> seen;
    std::string word = "unclear";
    for (int pairs = 1; word == "unclear" && now_ns() - begin < 3000000000; ++pairs) {
        auto before = bytes_so_far();
        const std::int64_t start = now_ns();
        exchange();
        const std::int64_t length = now_ns() - start;
        const Ways with = grown(before);
        before = bytes_so_far();
        const timespec pause = {length / 1000000000, length % 1000000000};
        nanosleep(&pause, nullptr);
        Ways without = grown(before);
        bool any = false;
        for (const auto& [way, bytes] : with) {
            Seen& one = seen[way];
            const double least = least_of(way, size);
            one.all += bytes + without[way];
            if (way == "rdma") {
                one.refuted = pairs >= enough && one.all < pairs * least;
                one.quiet = pairs >= enough && one.all < 3 * pairs * least ? enough : 0;
            } else {
                one.refuted = one.refuted || bytes < least;
                one.quiet += without[way] < least;
            }
            any = any || !one.refuted;
            if (!one.refuted && one.quiet >= enough) word = way;
        }
        if (!any) word = one_machine ? "memory" : "";
    }
    more = 0;
    MPI_Send(&more, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    return word;
}

}  // namespace paribus
