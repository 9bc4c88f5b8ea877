// Which way messages really go: seen at the counters of the interfaces, whatever was asked for.
#pragma once

#include <mpi.h>

#include <dirent.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "machine.hpp"

namespace paribus {

// Bytes sent and received so far by each interface of this network namespace, "rdma" for the
// InfiniBand and RoCE ports together (their counters are in units of 4 bytes).
inline std::map<std::string, double> bytes_so_far() {
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

// Sends 512 KiB from rank 0 to the last rank and back, and returns on rank 0 what counted them:
// "rdma", "loopback", "network" (an interface), else "memory" on one machine and "" across
// machines, where an adapter went round the counters. Collective; "" with one rank.
inline std::string carried(int rank, int ranks, bool one_machine) {
    constexpr int size = 1 << 19;
    if (ranks < 2) return "";
    std::vector<char> data(size, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    const int last = ranks - 1;
    if (rank == last) {
        MPI_Recv(data.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    if (rank != 0) return "";
    const auto before = bytes_so_far();
    MPI_Send(data.data(), size, MPI_CHAR, last, 0, MPI_COMM_WORLD);
    MPI_Recv(data.data(), size, MPI_CHAR, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::string most;
    double moved = size;  // half of what the two messages come to
    for (const auto& [name, bytes] : bytes_so_far()) {
        const auto then = before.find(name);
        const double grown = then == before.end() ? 0 : bytes - then->second;
        if (grown >= moved || (name == "rdma" && grown >= size)) {
            moved = grown;
            most = name == "lo" ? "loopback" : name == "rdma" ? "rdma" : "network";
        }
    }
    return most.empty() && one_machine ? "memory" : most;
}

}  // namespace paribus
