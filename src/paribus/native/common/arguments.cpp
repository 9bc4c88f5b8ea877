#include "arguments.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <tuple>

#include "json.hpp"

namespace paribus {

namespace {

bool read_long(const char* text, long least, long& value) {
    char* end = nullptr;
    errno = 0;
    const long read = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || read < least) return false;
    value = read;
    return true;
}

bool read_double(const char* text, double& value) {
    char* end = nullptr;
    const double read = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(read >= 0) || read > 1e9) return false;
    value = read;
    return true;
}

// "8,4096" is a list; "1:1048576" doubles from the first to the last, both included.
std::string read_sizes(const Spec& spec, const std::string& text, std::vector<long>& sizes) {
    sizes.clear();
    if (text.empty()) return "";
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
        for (long size = low; size < high; size = size > 0 ? size * 2 : spec.element_size) {
            sizes.push_back(size);
            if (size > high / 2 && size > 0) break;
        }
        sizes.push_back(high);
        from = comma + 1;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const long size = sizes[i];
        const std::string is = "--bytes: " + std::to_string(size) + " bytes ";
        if (size < spec.least_size)
            return is + "cannot be measured; the least is " + std::to_string(spec.least_size);
        if (size % spec.element_size != 0)
            return is + "is not a multiple of " + std::to_string(spec.element_size) +
                   ", the size of one element";
        if (spec.carried && size > INT_MAX)
            return is + "is more than MPI counts in one call (2147483647)";
        for (std::size_t j = 0; j < i; ++j)
            if (sizes[j] == size) return is + "is asked for twice";
    }
    return "";
}

// A known answer for one arm only: its environment may carry the delay, and an argument that is
// given as well counts instead.
std::string read_delays(const Spec& spec, Arguments& a) {
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

std::string read_option(const Option& option, const std::string& text, Arguments& a) {
    a.text[option.name] = text;
    const auto needs = [&](const std::string& what) {
        return std::string("--") + option.name + " needs " + what;
    };
    std::string words;
    bool among = false;
    for (const char* word : option.words) {
        if (word == nullptr) break;
        words += (words.empty() ? "" : ", ") + std::string(word);
        among = among || text == word;
    }
    if (!words.empty() && !among) return needs("one of " + words);
    if (option.most == 0) return "";
    std::vector<long>& numbers = a.numbers[option.name];
    numbers.clear();
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = option.list ? text.find(',', from) : std::string::npos;
        const std::string item = text.substr(from, comma - from);
        long number = 0;
        if (!read_long(item.c_str(), option.least, number) || number > option.most ||
            std::count(numbers.begin(), numbers.end(), number) > 0)
            return needs(
                (option.list ? "whole numbers, each once, from " : "a whole number from ") +
                std::to_string(option.least) + " to " + std::to_string(option.most));
        numbers.push_back(number);
        if (comma == std::string::npos) break;
        from = comma + 1;
    }
    return "";
}

// Reads argument `key` with its value, null where there is none; returns what is wrong with it.
std::string read_argument(const Spec& spec, const std::string& key, const char* value,
                          Arguments& a) {
    const std::string text = value == nullptr ? "" : value;
    const bool timed = !spec.libraries, counted = timed && !spec.intervals;
    const bool paced = timed && spec.paced;
    for (const Option* option = spec.options; option != nullptr && option->name; ++option)
        if (key == std::string("--") + option->name) return read_option(*option, text, a);
    const auto needs = [&](bool read, const std::string& what) {
        return read ? "" : key + " needs " + what;
    };
    const std::tuple<const char*, bool, long, long&> whole[] = {
        {"--ranks", true, 1, a.ranks},           {"--samples", paced, 1, a.samples},
        {"--warmup", counted, 0, a.warmup},      {"--iterations", counted, 1, a.iterations},
        {"--count", spec.libraries, 1, a.count}, {"--functions", spec.libraries, 1, a.functions}};
    for (const auto& [name, known, least, into] : whole)
        if (known && key == name)
            return needs(read_long(text.c_str(), least, into),
                         "a whole number of at least " + std::to_string(least));
    const std::tuple<const char*, bool, double&> real[] = {{"--max-case-s", paced, a.max_case_s},
                                                           {"--delay-us", timed, a.delay_us},
                                                           {"--delay-share", timed, a.delay_share}};
    for (const auto& [name, known, into] : real)
        if (known && key == name)
            return needs(read_double(text.c_str(), into), "a number that is not negative");
    if (key == "--bytes" && spec.sizes != nullptr)
        return text.empty() ? needs(false, "a list or a range") : read_sizes(spec, text, a.bytes);
    if (key == "--libraries" && spec.libraries) {
        a.libraries = text;
        return needs(value != nullptr, "a directory");
    }
    if (key != "--like" || !spec.likes) return "unknown argument " + key + "; see --help";
    const Like likes[] = {Like::paribus, Like::osu, Like::imb};
    const auto* const like =
        std::find_if(likes, likes + 3, [&](Like l) { return text == name_of(l); });
    if (like != likes + 3) a.like = *like;
    return needs(like != likes + 3, "one of paribus, osu, imb");
}

}  // namespace

Arguments read_arguments(const Spec& spec, int argc, char** argv) {
    Arguments a;
    a.samples = spec.samples;
    a.max_case_s = spec.max_case_s;
    if (spec.sizes != nullptr) a.error = read_sizes(spec, spec.sizes, a.bytes);
    for (const Option* option = spec.options; option != nullptr && option->name; ++option)
        read_option(*option, option->initial, a);
    if (a.error.empty()) a.error = read_delays(spec, a);
    for (int i = 1; i < argc && a.error.empty(); ++i) {
        const std::string key = argv[i];
        if (key == "--help") {
            a.help = true;
        } else if (key == "--self-test") {
            a.self_test = true;
        } else if (key == "--memory") {
            a.memory = true;
        } else if (key == "--corrupt" && spec.data) {
            a.corrupt = true;
        } else {
            a.error = read_argument(spec, key, i + 1 < argc ? argv[i + 1] : nullptr, a);
            a.samples_given = a.samples_given || key == "--samples";
            ++i;
        }
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

Need need_of(const Spec& spec, const Arguments& a, int ranks) {
    if (spec.need != nullptr) return spec.need(a, ranks);
    if (a.bytes.empty()) return {};
    const long largest = *std::max_element(a.bytes.begin(), a.bytes.end());
    const int each_rank = spec.out_for_each_rank + spec.in_for_each_rank;
    const double blocks = spec.buffers + static_cast<double>(each_rank) * (ranks - 1);
    return {static_cast<double>(largest) * blocks,
            "buffers for " + std::to_string(largest) + " bytes do"};
}

std::string usage(const Spec& spec) {
    std::string text = std::string("usage: mpirun -n RANKS ") + spec.name + " [arguments]\n" +
                       spec.summary + "\n\n";
    if (spec.sizes != nullptr)
        text +=
            std::string("  --bytes LIST|FROM:TO   sizes, such as 8,4096 or 1:1048576 (default ") +
            (*spec.sizes ? spec.sizes : "by the caches") + ")\n";
    if (!spec.libraries && spec.paced)
        text += "  --samples N            samples per case (default " +
                std::to_string(spec.samples) +
                "; fewer where the case would\n"
                "                         last longer than --max-case-s)\n"
                "  --max-case-s S         time that one case may take (default " +
                json(spec.max_case_s) + ")\n";
    if (!spec.libraries && !spec.intervals)
        text +=
            R"(  --warmup N             samples dropped before (default a tenth, 10 iterations or more)
  --iterations N         iterations per sample, instead of as many as the clock needs
)";
    for (const Option* option = spec.options; option != nullptr && option->name; ++option) {
        const std::string left = std::string("  --") + option->name;
        text += left + std::string(left.size() < 24 ? 25 - left.size() : 1, ' ') + option->help;
        text += *option->initial ? std::string(" (default ") + option->initial + ")\n" : "\n";
    }
    text += spec.libraries
                ? R"(  --libraries DIR        where libparibus_0000.so and the following lie
  --count N              how many of them to load
  --functions M          functions in each of them
)"
                : R"(  --delay-us X           wait X us in every operation: a known answer
  --delay-share X        wait the share X of the operation's own time in every operation
                         (PARIBUS_DELAY_US and PARIBUS_DELAY_SHARE do the same for one arm)
)";
    if (spec.likes)
        text += "  --like osu|imb         measure as the OSU or Intel MPI benchmarks define it\n";
    return text + R"(  --ranks N              refuse to measure with any other number of ranks
  --memory               print the bytes that a rank of --ranks N needs, and end
  --corrupt              for tests: damage one received byte, so that the check must fail
  --self-test            for tests: print what recording one sample costs, and end
)";
}

std::string echo(const Spec& spec, const Arguments& a) {
    Object out;
    if (spec.sizes != nullptr) out.add("bytes", a.bytes);
    if (spec.libraries) {
        out.add("libraries", a.libraries).add("count", a.count).add("functions", a.functions);
    } else {
        if (spec.paced) out.add("samples", a.samples);
        if (!spec.intervals) out.add("warmup", a.warmup).add("iterations", a.iterations);
        if (spec.paced) out.add("max_case_s", a.max_case_s);
    }
    for (const Option* option = spec.options; option != nullptr && option->name; ++option) {
        std::string key = option->name;
        std::replace(key.begin(), key.end(), '-', '_');
        if (option->most == 0) out.add(key.c_str(), a.text.at(option->name));
        else if (option->list) out.add(key.c_str(), a.numbers.at(option->name));
        else out.add(key.c_str(), a.numbers.at(option->name).front());
    }
    if (a.delay_us > 0) out.add("delay_us", a.delay_us);
    if (a.delay_share > 0) out.add("delay_share", a.delay_share);
    return out.text();
}

}  // namespace paribus
