// Message rate: messages per second that all pairs of ranks together send in windows.
#include "common/windows.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Session session(
        {"message_rate", "Messages per second of all pairs of ranks at once, in windows of 64.",
         Ranks::even, "1:1048576"},
        argc, argv);
    const int pairs = session.ranks / 2;
    for (const long bytes : session.arguments.bytes) {
        Windows windows(session, bytes, false);
        Series series = windows.measure(true, {100, 10}, {20, 2});
        series.metric = "message_rate";
        series.unit = "msg/s";
        for (double& ns : series.samples) ns = 1e9 * window * pairs / ns;
        session.keep(std::move(series));
    }
    return session.finish();
}
