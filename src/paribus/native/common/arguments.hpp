// What a kernel is and what it was asked for: the command line, read or refused.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace paribus {

enum class Ranks { any, two, even, several };

enum class Like { paribus, osu, imb };

enum class Start { together, flow };  // each sample with all ranks, or back to back

// An argument that one kernel alone has: a whole number from `least` to `most`, a list of them, one
// of some words, or with neither any text.
struct Option {
    const char* name = nullptr;  // nullptr ends an array of them
    const char* initial = "";
    const char* help = "";
    long least = 0, most = 0;
    bool list = false;
    const char* words[6] = {};
};

struct Arguments;

// Bytes that each rank takes, and what takes them, as "class D does" ("not fit"). None where that
// shows only on the machine.
struct Need {
    double bytes = 0;
    std::string what{};
};

// What a kernel is; what it leaves out is usual.
struct Spec {
    const char* name = "";
    const char* summary = "";
    Ranks ranks = Ranks::any;
    const char* metric = "";
    const char* unit = "";
    const char* sizes = "1:1048576";  // default of --bytes; "": none, and nullptr: no --bytes
    long least_size = 1;              // that makes sense
    long element_size = 1;            // sizes must be multiples of this
    int buffers = 2;                  // that a rank holds, of one size each,
    bool carried = true;              // by MPI, each in one call
    int blocks = 1;                   // of one size that each of these two has,
    bool out_for_each_rank = false;   // or of one for every rank
    bool in_for_each_rank = false;
    bool pairs = false;  // of ranks exchange messages, and the lower one measures
    Start start = Start::together;
    long osu_iterations = 0;  // of OSU's program for it, up to 8 KiB and above
    long osu_warmup = 0;
    long osu_large_iterations = 0;
    long osu_large_warmup = 0;
    std::size_t imb_room = 0;  // behind each buffer, with --like imb
    bool likes = true;         // can measure as other programs define it
    bool libraries = false;    // takes --libraries, --count, --functions
    bool data = true;          // carries data, which --corrupt damages
    bool intervals = false;    // a sample is a stretch of time: no --warmup, no --iterations
    bool paced = true;         // takes --samples and --max-case-s, not an option of its own
    const Option* options = nullptr;
    // Of a kernel whose memory is of another kind than such buffers.
    Need (*need)(const Arguments&, int ranks) = nullptr;
    long samples = 200;        // default of --samples
    double max_case_s = 0.15;  // default of --max-case-s
    long least_samples = 20;   // even where they last longer than that
    long least_warmup = 10;    // operations that are dropped before the first sample, at least
};

struct Arguments {
    std::vector<long> bytes{0};  // of each case; one case where the kernel has no sizes
    long samples = 0;
    bool samples_given = false;
    long warmup = -1;
    long iterations = 0;
    long ranks = 0;
    double max_case_s = 0;
    Like like = Like::paribus;
    double delay_us = 0;
    double delay_share = 0;
    bool corrupt = false;
    bool self_test = false;
    bool memory = false;
    bool help = false;
    std::string libraries;
    long count = 0;
    long functions = 0;
    std::map<std::string, std::string> text;           // of each option
    std::map<std::string, std::vector<long>> numbers;  // of those that are numbers
    std::string error;
};

inline const char* name_of(Like like) {
    return like == Like::osu ? "osu" : like == Like::imb ? "imb" : "paribus";
}

// Reads the environment, then argv; `error` holds the sentence for the user when something cannot
// be used.
Arguments read_arguments(const Spec& spec, int argc, char** argv);

// What a rank of that many needs: buffers of the largest size, unless the kernel says otherwise.
Need need_of(const Spec& spec, const Arguments& a, int ranks);

std::string usage(const Spec& spec);

std::string echo(const Spec& spec, const Arguments& a);

}  // namespace paribus
