#include "machine.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace paribus {

std::string read_text(const char* path) {
    std::string text;
    if (std::FILE* file = std::fopen(path, "re")) {
        char part[4096];
        for (std::size_t n; (n = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
        std::fclose(file);
    }
    return text;
}

std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

std::string boot_hash() {
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : read_text("/proc/sys/kernel/random/boot_id"))
        if (c > ' ') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    char text[8];
    std::snprintf(text, sizeof text, "%06x", static_cast<unsigned>(hash >> 40));
    return text;
}

std::vector<int> allowed_cores() {
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

bool stay_on(const std::vector<int>& cores) {
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

std::string core_list(const std::vector<int>& cores) {
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

long soft_limit(int resource) {
    rlimit limit;
    if (getrlimit(static_cast<decltype(RLIMIT_NOFILE)>(resource), &limit) != 0) return -1;
    return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<long>(limit.rlim_cur);
}

std::string hypervisor() {
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 31 & 1) == 0) return "";
    __cpuid(0x40000000, a, b, c, d);
    char text[13] = "";
    std::memcpy(text, &b, 4);
    std::memcpy(text + 4, &c, 4);
    std::memcpy(text + 8, &d, 4);
    return text;
#else
    return "";
#endif
}

std::string control_group() {
    const std::string text = "\n" + read_text("/proc/self/cgroup");
    std::string path;
    for (const char* mark : {"\n0::", ":cpu,cpuacct:", ":cpu:"}) {
        const std::size_t at = text.find(mark);
        if (at == std::string::npos) continue;
        const std::size_t start = at + std::strlen(mark);
        path = text.substr(start, text.find('\n', start) - start);
        if (path.size() > 1) break;
    }
    return path;
}

double available_bytes() {
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

namespace {

/// Return the seconds that were stolen from `cores` since boot, as their mean, by /proc/stat.
double stolen(const std::string& stat, const std::vector<int>& cores) {
    double sum = 0;
    int found = 0;
    for (const int core : cores) {
        double user, nice, system, idle, wait, interrupt, soft, steal;
        const std::size_t at = stat.find("\ncpu" + std::to_string(core) + ' ');
        if (at == std::string::npos ||
            std::sscanf(stat.c_str() + at, " cpu%*d %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice,
                        &system, &idle, &wait, &interrupt, &soft, &steal) != 8)
            continue;
        sum += steal;
        ++found;
    }
    return found ? sum / found / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace

Usage usage_so_far() {
    Usage now;
    rusage self;
    if (getrusage(RUSAGE_SELF, &self) == 0) {
        const auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
        };
        now.cpu_s = seconds(self.ru_utime) + seconds(self.ru_stime);
        now.involuntary = self.ru_nivcsw;
    }
    now.steal_s = stolen(read_text("/proc/stat"), allowed_cores());
    return now;
}

}  // namespace paribus
