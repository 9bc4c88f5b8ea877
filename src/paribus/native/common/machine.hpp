// What only a rank can say of the machine it is on, read from the kernel and the loader.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace paribus {

inline std::string read_text(const char* path) {
    std::string text;
    if (std::FILE* file = std::fopen(path, "re")) {
        char part[4096];
        for (std::size_t n; (n = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
        std::fclose(file);
    }
    return text;
}

inline std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

// Six hex digits of the FNV-1a hash of the boot id: equal on one running kernel, containers
// included, and no more telling than that.
inline std::string boot_hash() {
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : read_text("/proc/sys/kernel/random/boot_id"))
        if (c > ' ') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    char text[8];
    std::snprintf(text, sizeof text, "%06x", static_cast<unsigned>(hash >> 40));
    return text;
}

// The cores that this thread may use, in order.
inline std::vector<int> allowed_cores() {
    for (int most = 1024; most <= 1 << 18; most *= 4) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(most));
        const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
        const bool read = sched_getaffinity(0, size, set) == 0;
        std::vector<int> cores;
        for (int core = 0; read && core < most; ++core)
            if (CPU_ISSET_S(static_cast<std::size_t>(core), size, set)) cores.push_back(core);
        CPU_FREE(set);
        if (read) return cores;
    }
    return {};
}

// Restricts the calling thread to `cores`; false where the kernel or a cpuset forbids it.
inline bool stay_on(const std::vector<int>& cores) {
    if (cores.empty()) return false;
    const auto most = static_cast<std::size_t>(cores.back()) + 1;
    cpu_set_t* set = CPU_ALLOC(most);
    const std::size_t size = CPU_ALLOC_SIZE(most);
    CPU_ZERO_S(size, set);
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), size, set);
    const bool done = sched_setaffinity(0, size, set) == 0;
    CPU_FREE(set);
    return done;
}

// "0-3,8": the kernel's own way to write a list of cores.
inline std::string core_list(const std::vector<int>& cores) {
    std::string text;
    for (std::size_t i = 0; i < cores.size();) {
        std::size_t last = i;
        while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(cores[i]);
        if (last > i) text += '-' + std::to_string(cores[last]);
        i = last + 1;
    }
    return text;
}

inline long soft_limit(int resource) {
    rlimit limit;
    if (getrlimit(static_cast<decltype(RLIMIT_NOFILE)>(resource), &limit) != 0) return -1;
    return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<long>(limit.rlim_cur);
}

// The GNU build-id of the object that holds `symbol`, in hex; "" where it has none.
inline std::string build_id_of(const char* symbol) {
    struct Search {
        const void* base;
        std::string id;
    } search{nullptr, ""};
    Dl_info info;
    void* address = dlsym(RTLD_DEFAULT, symbol);
    if (address == nullptr || dladdr(address, &info) == 0) return "";
    search.base = info.dli_fbase;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* data) {
            auto& wanted = *static_cast<Search*>(data);
            if (reinterpret_cast<const void*>(object->dlpi_addr) != wanted.base) return 0;
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const auto& header = object->dlpi_phdr[i];
                if (header.p_type != PT_NOTE) continue;
                const auto* at =
                    reinterpret_cast<const unsigned char*>(object->dlpi_addr + header.p_vaddr);
                const auto* end = at + header.p_memsz;
                while (at + sizeof(ElfW(Nhdr)) <= end) {
                    ElfW(Nhdr) note;
                    std::memcpy(&note, at, sizeof note);
                    const auto* name = at + sizeof note;
                    const auto* text = name + ((note.n_namesz + 3u) & ~3u);
                    if (note.n_type == 3 && note.n_namesz == 4 && !std::memcmp(name, "GNU", 4)) {
                        char hex[3];
                        for (unsigned b = 0; b < note.n_descsz; ++b) {
                            std::snprintf(hex, sizeof hex, "%02x", text[b]);
                            wanted.id += hex;
                        }
                        return 1;
                    }
                    at = text + ((note.n_descsz + 3u) & ~3u);
                }
            }
            return 1;
        },
        &search);
    return search.id;
}

// Bytes that can still be allocated here: free memory, or less where a control group says so.
inline double available_bytes() {
    double most = 1e18, value = 0;
    const std::string memory = read_text("/proc/meminfo");
    const std::size_t at = memory.find("MemAvailable:");
    if (at != std::string::npos && std::sscanf(memory.c_str() + at + 13, "%lf", &value) == 1)
        most = value * 1024;
    double used = 0;
    if (std::sscanf(read_text("/sys/fs/cgroup/memory.max").c_str(), "%lf", &value) == 1 &&
        std::sscanf(read_text("/sys/fs/cgroup/memory.current").c_str(), "%lf", &used) == 1)
        most = std::min(most, std::max(0.0, value - used));
    return most;
}

// What the kernel has counted so far: for this process, and time stolen from the whole machine.
struct Usage {
    double cpu_s = 0;
    long involuntary = 0;
    double steal_s = 0;
};

inline Usage usage_so_far() {
    Usage now;
    rusage self;
    if (getrusage(RUSAGE_SELF, &self) == 0) {
        const auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
        };
        now.cpu_s = seconds(self.ru_utime) + seconds(self.ru_stime);
        now.involuntary = self.ru_nivcsw;
    }
    double user, nice, system, idle, wait, interrupt, soft, steal;
    if (std::sscanf(read_text("/proc/stat").c_str(), "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user,
                    &nice, &system, &idle, &wait, &interrupt, &soft, &steal) == 8)
        now.steal_s = steal / static_cast<double>(sysconf(_SC_CLK_TCK));
    return now;
}

}  // namespace paribus
