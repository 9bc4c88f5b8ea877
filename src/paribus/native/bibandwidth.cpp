// Both ways at once: bytes per second that windows of messages carry between two ranks.
#include "common/windows.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Session session(
        {"bibandwidth", "Both ways at once between two ranks, in windows of 64 messages.",
         Ranks::two, "1:1048576"},
        argc, argv);
    for (const long bytes : session.arguments.bytes) {
        Windows windows(session, bytes, true);
        Series series = windows.measure(false, {100, 10}, {20, 2});
        series.metric = "bandwidth";
        series.unit = "MB/s";
        for (double& ns : series.samples) ns = 1e3 * 2 * window * static_cast<double>(bytes) / ns;
        session.keep(std::move(series));
    }
    return session.finish();
}
