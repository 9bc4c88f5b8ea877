// What a kernel is and what it was asked for: the command line, read or refused.
#pragma once

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "json.hpp"

namespace paribus {

enum class Ranks { any, two, even, several };
enum class Like { paribus, osu, imb };

struct Spec {
    const char* name;
    const char* summary;
    Ranks ranks;
    const char* bytes;       // default of --bytes; nullptr: the kernel has no sizes
    long least_bytes = 1;    // smallest size that makes sense
    long unit_bytes = 1;     // sizes must be multiples of this
    long own_buffers = 2;    // buffers of `bytes` that a rank holds ...
    long rank_buffers = 0;   // ... and those that it holds once per rank
    bool likes = true;       // can measure as other programs define it
    bool libraries = false;  // takes --libraries, --count, --functions
};

struct Arguments {
    std::vector<long> bytes;
    long samples = 200;
    bool samples_given = false;
    long warmup = -1;
    long iterations = 0;
    long ranks = 0;
    double max_case_s = 0.15;
    Like like = Like::paribus;
    double delay_us = 0;
    double delay_share = 0;
    bool corrupt = false;
    bool self_test = false;
    bool help = false;
    std::string libraries;
    long count = 0;
    long functions = 0;
    std::string error;
};

inline const char* name_of(Like like) {
    return like == Like::osu ? "osu" : like == Like::imb ? "imb" : "paribus";
}

namespace detail {

inline bool read_long(const char* text, long least, long& value) {
    char* end = nullptr;
    errno = 0;
    const long read = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || read < least) return false;
    value = read;
    return true;
}

inline bool read_double(const char* text, double& value) {
    char* end = nullptr;
    const double read = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(read >= 0) || read > 1e9) return false;
    value = read;
    return true;
}

// "8,4096" is a list; "1:1048576" doubles from the first to the last, both included.
inline std::string read_sizes(const Spec& spec, const std::string& text, std::vector<long>& sizes) {
    sizes.clear();
    const std::string wrong =
        "--bytes " + text + " is neither a list such as 8,4096 nor a range such as 1:1048576";
    std::size_t from = 0;
    while (from <= text.size()) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        const std::string item = text.substr(from, comma - from);
        const std::size_t colon = item.find(':');
        long low = 0, high = 0;
        if (!read_long(item.substr(0, colon).c_str(), 0, low)) return wrong;
        high = low;
        if (colon != std::string::npos && !read_long(item.substr(colon + 1).c_str(), low, high))
            return wrong;
        for (long size = low; size < high; size = size > 0 ? size * 2 : spec.unit_bytes) {
            sizes.push_back(size);
            if (size > high / 2 && size > 0) break;
        }
        sizes.push_back(high);
        from = comma + 1;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const long size = sizes[i];
        const std::string is = "--bytes: " + std::to_string(size) + " bytes ";
        if (size < spec.least_bytes)
            return is + "cannot be measured; the least is " + std::to_string(spec.least_bytes);
        if (size % spec.unit_bytes != 0)
            return is + "is not a multiple of " + std::to_string(spec.unit_bytes) +
                   ", the size of one element";
        if (size > INT_MAX) return is + "is more than MPI counts in one call (2147483647)";
        for (std::size_t j = 0; j < i; ++j)
            if (sizes[j] == size) return is + "is asked for twice";
    }
    return "";
}

// A known answer for one arm only: its environment may carry the delay, and an argument that is
// given as well counts instead.
inline std::string read_delays(const Spec& spec, Arguments& a) {
    const struct {
        const char* name;
        double& into;
    } known[] = {{"PARIBUS_DELAY_US", a.delay_us}, {"PARIBUS_DELAY_SHARE", a.delay_share}};
    for (const auto& one : known) {
        const char* value = std::getenv(one.name);
        if (value == nullptr) continue;
        const std::string name = one.name;
        if (spec.libraries) return name + " is set, and this kernel has no operation to delay";
        if (!read_double(value, one.into))
            return name + "=" + value + " is not a number of at least 0";
    }
    return "";
}

}  // namespace detail

// Reads the environment, then argv; `error` holds the sentence for the user when something cannot
// be used.
inline Arguments read_arguments(const Spec& spec, int argc, char** argv) {
    Arguments a;
    if (spec.bytes != nullptr) a.error = detail::read_sizes(spec, spec.bytes, a.bytes);
    if (a.error.empty()) a.error = detail::read_delays(spec, a);
    for (int i = 1; i < argc && a.error.empty(); ++i) {
        const std::string key = argv[i];
        const bool damageable = spec.bytes != nullptr || spec.libraries;
        if ((key == "--corrupt" && damageable) || key == "--self-test" || key == "--help") {
            (key == "--corrupt" ? a.corrupt : key == "--help" ? a.help : a.self_test) = true;
            continue;
        }
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        const auto whole = [&](long least, long& into) {
            if (value == nullptr || !detail::read_long(value, least, into))
                a.error = key + " needs a whole number of at least " + std::to_string(least);
        };
        const auto real = [&](double& into) {
            if (value == nullptr || !detail::read_double(value, into))
                a.error = key + " needs a number that is not negative";
        };
        if (key == "--bytes" && spec.bytes != nullptr) {
            a.error = value != nullptr ? detail::read_sizes(spec, value, a.bytes)
                                       : "--bytes needs a list or a range";
        } else if (key == "--samples" && !spec.libraries) {
            whole(1, a.samples);
            a.samples_given = true;
        } else if (key == "--warmup" && !spec.libraries) {
            whole(0, a.warmup);
        } else if (key == "--iterations" && !spec.libraries) {
            whole(1, a.iterations);
        } else if (key == "--ranks") {
            whole(1, a.ranks);
        } else if (key == "--max-case-s" && !spec.libraries) {
            real(a.max_case_s);
        } else if (key == "--delay-us" && !spec.libraries) {
            real(a.delay_us);
        } else if (key == "--delay-share" && !spec.libraries) {
            real(a.delay_share);
        } else if (key == "--like" && spec.likes) {
            const std::string name = value == nullptr ? "" : value;
            if (name == "osu") a.like = Like::osu;
            else if (name == "imb") a.like = Like::imb;
            else if (name == "paribus") a.like = Like::paribus;
            else a.error = "--like needs one of paribus, osu, imb";
        } else if (key == "--libraries" && spec.libraries) {
            if (value == nullptr) a.error = "--libraries needs a directory";
            else a.libraries = value;
        } else if (key == "--count" && spec.libraries) {
            whole(1, a.count);
        } else if (key == "--functions" && spec.libraries) {
            whole(1, a.functions);
        } else {
            a.error = "unknown argument " + key + "; see --help";
        }
        ++i;
    }
    if (a.error.empty() && a.like != Like::paribus && a.delay_us + a.delay_share > 0)
        a.error =
            "--delay-us and --delay-share do not go with --like, nor do PARIBUS_DELAY_US and "
            "PARIBUS_DELAY_SHARE";
    if (a.error.empty() && spec.libraries && !a.help && !a.self_test &&
        (a.libraries.empty() || a.count == 0 || a.functions == 0))
        a.error = "--libraries, --count and --functions are needed";
    return a;
}

inline std::string usage(const Spec& spec) {
    std::string text = std::string("usage: mpirun -n RANKS ") + spec.name + " [arguments]\n" +
                       spec.summary + "\n\n";
    if (spec.bytes != nullptr)
        text +=
            std::string("  --bytes LIST|FROM:TO   sizes, such as 8,4096 or 1:1048576 (default ") +
            spec.bytes + ")\n";
    if (spec.libraries)
        text +=
            "  --libraries DIR        where libparibus_0000.so and the following lie\n"
            "  --count N              how many of them to load\n"
            "  --functions M          functions in each of them\n";
    else
        text +=
            "  --samples N            samples per case (default 200; fewer, but 20, where the case\n"
            "                         would last longer than --max-case-s)\n"
            "  --max-case-s S         time that one case may take (default 0.15)\n"
            "  --warmup N             samples dropped before (default a tenth, 10 iterations or more)\n"
            "  --iterations N         iterations per sample, instead of as many as the clock needs\n"
            "  --delay-us X           wait X us in every operation: a known answer\n"
            "  --delay-share X        wait the share X of the operation's own time in every operation\n"
            "                         (PARIBUS_DELAY_US and PARIBUS_DELAY_SHARE do the same for one arm)\n";
    if (spec.likes)
        text += "  --like osu|imb         measure as the OSU or Intel MPI benchmarks define it\n";
    text +=
        "  --ranks N              refuse to measure with any other number of ranks\n"
        "  --corrupt              for tests: damage one received byte, so that the check must fail\n"
        "  --self-test            for tests: print what recording one sample costs, and end\n";
    return text;
}

inline std::string echo(const Spec& spec, const Arguments& a) {
    Object out;
    if (spec.bytes != nullptr) out.add("bytes", a.bytes);
    if (spec.libraries) {
        out.add("libraries", a.libraries).add("count", a.count).add("functions", a.functions);
        return out.text();
    }
    out.add("samples", a.samples).add("warmup", a.warmup).add("iterations", a.iterations);
    out.add("max_case_s", a.max_case_s);
    if (a.delay_us > 0) out.add("delay_us", a.delay_us);
    if (a.delay_share > 0) out.add("delay_share", a.delay_share);
    return out.text();
}

}  // namespace paribus
