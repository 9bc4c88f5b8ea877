#include "kernel.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "carried.hpp"

namespace paribus {

void Session::start(int argc, char** argv) {
    tell_need(read_arguments(spec, argc, argv));
    linked_ = mapped_objects();
    const std::int64_t before = now_ns();
    MPI_Init(&argc, &argv);
    init_ms = 1e-6 * static_cast<double>(now_ns() - before);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    arguments = read_arguments(spec, argc, argv);
    if (arguments.help) leave(0, usage(spec), stdout);
    if (!arguments.error.empty()) refuse(arguments.error);
    clock = examine_clock();
    if (arguments.self_test) self_test();
    refuse_wrong_ranks();
    agree_on_clock();
    if (like(Like::imb)) MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    gather_places();
    const Need need = need_of(spec, arguments, ranks);
    refuse_larger(need.bytes, need.what);
    const bool known = spec.need != nullptr && need.bytes > 0;
    probes_memory_ = !known || need.bytes >= triad_bytes;
    probe(state_before_);
    settle();
    offset_start_ = measure_offset(rank, ranks);
    usage_ = usage_so_far();
    began_ = now_ns();
}

std::string Session::case_text(long bytes) const {
    return spec.sizes == nullptr ? "{}" : Object().add("bytes", bytes).text();
}

Series Session::series(const std::string& where, long batch) const {
    return {where, spec.metric, batch, {}, {}};
}

void Session::refuse(const std::string& why) {
    leave(2, std::string(spec.name) + ": " + why + "\n", stderr);
}

std::string mib(double bytes) { return std::to_string(std::lround(bytes / (1 << 20))) + " MiB"; }

void Session::refuse_larger(double bytes, const std::string& what) {
    const auto& boot = boots_[static_cast<std::size_t>(rank)];
    const auto neighbours = std::count(boots_.begin(), boots_.end(), boot);
    const double needed = bytes * static_cast<double>(neighbours), there = available_bytes();
    int too_large = needed > 0.9 * there, any = 0;
    MPI_Allreduce(&too_large, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any != 0)
        refuse(what + " not fit in memory (" + mib(needed) + " for " + std::to_string(neighbours) +
               " of the ranks on a machine with " + mib(there) + " to spare)");
}

void Session::give_up_if(const std::string& wrong) {
    if (!wrong.empty()) {
        std::fprintf(stderr, "%s: %s\n", spec.name, wrong.c_str());
        std::fflush(stderr);
    }
    int mine = wrong.empty() ? 0 : 1, any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any == 0) return;
    MPI_Finalize();
    std::exit(1);
}

void Session::verify(const std::string& case_text, long position, std::size_t n) {
    std::string wrong;
    if (position >= 0)
        wrong = "wrong data at " + case_text + ": rank " + std::to_string(rank) + ", position " +
                std::to_string(position) + " of " + std::to_string(n);
    give_up_if(wrong);
    checked_ += static_cast<double>(n);
}

int Session::finish() {
    const double wall_s = 1e-9 * static_cast<double>(now_ns() - began_);
    const Usage now = usage_so_far();
    const Offset offset_end = measure_offset(rank, ranks);
    State after;
    probe(after);
    // Numbered over hosts in turn, the last rank may share rank 0's host, and others do not.
    auto other = static_cast<std::size_t>(ranks - 1);
    while (other > 0 && hosts_[other] == hosts_[0]) --other;
    if (other == 0) other = static_cast<std::size_t>(ranks - 1);
    const std::string carrier = carried(rank, static_cast<int>(other), boots_[0] == boots_[other]);
    std::string text = first_line(carrier);
    for (const Series& series : series_) text += line_of(series, offset_end);
    text += last_line(now, wall_s, after);
    int status = 0;
    if (rank == 0) {
        const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
        if (std::fflush(stdout) != 0 || !written) {
            std::fprintf(stderr, "%s: the output could not be written\n", spec.name);
            status = 1;
        }
    }
    MPI_Finalize();
    return status;
}

void Session::leave(int status, const std::string& text, std::FILE* where) {
    if (rank == 0) {
        std::fputs(text.c_str(), where);
        std::fflush(where);
    }
    MPI_Finalize();
    std::exit(status);
}

void Session::self_test() {
    constexpr long n = 20000;
    double both = 1e9;
    for (int round = 0; round < 20; ++round) {
        Stamps stamps(n);
        const std::int64_t start = now_ns();
        for (long i = 0; i < n; ++i) stamps.record();
        both = std::min(both, static_cast<double>(now_ns() - start) / n);
    }
    Object out;
    out.add("self_test", true).add("tick_ns", clock.tick_ns).add("clock_ns", clock.cost_ns);
    out.add("record_ns", both).add("spin_ns", clock.spin_ns);
    leave(0, out.text() + "\n", stdout);
}

void Session::agree_on_clock() {
    clock.tick_ns = of_rank_0(clock.tick_ns, rank);
    clock.cost_ns = of_rank_0(clock.cost_ns, rank);
}

void Session::refuse_wrong_ranks() {
    const std::string have = std::to_string(ranks);
    if (arguments.ranks > 0 && arguments.ranks != ranks)
        refuse("MPI started " + have + " ranks, not the " + std::to_string(arguments.ranks) +
               " asked for; the launcher may belong to another MPI library");
    if (spec.ranks == Ranks::two && ranks != 2) refuse("needs exactly 2 ranks, not " + have);
    if (spec.ranks == Ranks::several && ranks < 2) refuse("needs 2 ranks or more, not " + have);
    if (spec.ranks == Ranks::even && ranks % 2 != 0)
        refuse("needs an even number of ranks, not " + have);
}

std::vector<std::string> Session::gather(const std::string& mine) const {
    constexpr int width = 256;
    char own[width] = "";
    std::snprintf(own, width, "%s", mine.c_str());
    std::vector<char> all(static_cast<std::size_t>(width) * static_cast<std::size_t>(ranks));
    MPI_Allgather(own, width, MPI_CHAR, all.data(), width, MPI_CHAR, MPI_COMM_WORLD);
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size(); at += width) texts.emplace_back(&all[at]);
    return texts;
}

void Session::gather_places() {
    hosts_ = gather(host_name());
    boots_ = gather(boot_hash());
    affinity_ = gather(core_list(allowed_cores()));
    groups_ = gather(control_group());
    mapped_ = mapped_objects();
    mapped_hashes_ = gather(hash_of(mapped_));
    std::vector<int> cores(static_cast<std::size_t>(ranks));
    int here = sched_getcpu();
    MPI_Allgather(&here, 1, MPI_INT, cores.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t r = 1; r < cores.size(); ++r)
        if (boots_[r] == boots_[0]) cores_here_.push_back(cores[r]);
}

void Session::tell_need(const Arguments& given) const {
    if (!given.memory) return;
    if (!given.error.empty()) {
        std::fprintf(stderr, "%s: %s\n", spec.name, given.error.c_str());
        std::exit(2);
    }
    const Need need = need_of(spec, given, static_cast<int>(std::max(1L, given.ranks)));
    std::puts(Object().add("bytes", need.bytes).add("what", need.what).text().c_str());
    std::exit(0);
}

void Session::probe(State& state) {
    const std::int64_t start = now_ns();
    if (rank == 0) state = probe_state(cores_here_, probes_memory_);
    probe_ms_ += 1e-6 * static_cast<double>(now_ns() - start);
    wait_quietly_for_rank_0(rank);
}

std::string Session::first_line(const std::string& carrier) const {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    const std::string mpi(version, std::strcspn(version, "\n"));
    Object limits, line;
    limits.add("nofile", soft_limit(RLIMIT_NOFILE));
    limits.add("memlock", soft_limit(RLIMIT_MEMLOCK)).add("stack", soft_limit(RLIMIT_STACK));
    line.add("paribus_kernel", 1).add("kernel", spec.name).add("version", "1");
    line.add("ranks", ranks).add("hosts", hosts_).add("boot", boots_);
    line.add("mpi", mpi).add("mpi_build_id", build_id_of("PMPI_Init"));
    line.add("affinity", affinity_).raw("limits", limits.text());
    line.add("cgroup", groups_).add("hypervisor", hypervisor()).add("transport", carrier);
    line.raw("libraries", text_of(linked_)).raw("loaded", text_of(mapped_, linked_));
    line.add("mapped", mapped_hashes_).add("ucx", ucx_version(mapped_));
    line.add("libfabric", libfabric_version(mapped_)).add("blas_core", blas_core(mapped_));
    line.add("tick_ns", clock.tick_ns).add("clock_ns", clock.cost_ns);
    line.add("like", name_of(arguments.like)).raw("args", echo(spec, arguments));
    return line.text() + "\n";
}

std::string Session::line_of(const Series& series, const Offset& offset_end) const {
    Object line;
    line.raw("case", series.case_text).add("metric", series.metric);
    line.add("unit", series.unit == nullptr ? spec.unit : series.unit);
    line.add("batch", series.batch).add("count", static_cast<long>(series.samples.size()));
    line.add("samples", series.samples);
    if (!series.starts.empty()) {
        std::int64_t origin = series.starts.front() - offset_start_.ahead_ns;
        MPI_Bcast(&origin, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
        const int n = static_cast<int>(series.starts.size());
        std::vector<double> at, first(series.starts.size()), last(series.starts.size());
        for (const auto t : series.starts)
            at.push_back(since(origin, t, offset_start_, offset_end));
        MPI_Reduce(at.data(), first.data(), n, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(at.data(), last.data(), n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < last.size(); ++i) last[i] = 1e-3 * (last[i] - first[i]);
        line.add("skew_us", last);
    }
    std::string text = line.text();
    if (!series.more.empty()) text.replace(text.size() - 1, 1, ", " + series.more.substr(1));
    return text + "\n";
}

std::string Session::last_line(const Usage& now, double wall_s, const State& after) const {
    double cpu = now.cpu_s - usage_.cpu_s, steal = now.steal_s - usage_.steal_s, stolen = 0;
    long involuntary = now.involuntary - usage_.involuntary;
    double checked = 0;
    std::vector<double> cpu_s(static_cast<std::size_t>(ranks));
    std::vector<long> switches(static_cast<std::size_t>(ranks));
    MPI_Gather(&cpu, 1, MPI_DOUBLE, cpu_s.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(&involuntary, 1, MPI_LONG, switches.data(), 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Reduce(&steal, &stolen, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&checked_, &checked, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    Object probes, line;
    probes.raw("before", state_before_.text()).raw("after", after.text());
    line.add("end", true).add("check", "passed").add("checked", static_cast<long>(checked));
    line.add("cpu_s", cpu_s).add("wall_s", wall_s).add("involuntary", switches);
    line.add("steal_s", stolen).raw("probe", probes.text()).add("probe_ms", probe_ms_);
    return line.text() + "\n";
}

}  // namespace paribus
