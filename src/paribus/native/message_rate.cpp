// Message rate: messages per second that all pairs of ranks together send in windows.
#include "common/pairs.hpp"

using namespace paribus;

struct MessageRate : Windows {
    using Windows::Windows;
    static constexpr Spec spec() {
        Spec spec = windows("message_rate",
                            "Messages per second of all pairs of ranks at once, in windows of 64.");
        spec.ranks = Ranks::even;
        spec.metric = "message_rate";
        spec.unit = "msg/s";
        spec.start = Start::together;
        return spec;
    }
    double figure(double ns) const { return 1e9 * window * (ranks / 2) / ns; }
};

int main(int argc, char** argv) { return run<MessageRate>(argc, argv); }
