// One way: bytes per second that windows of messages carry between two ranks.
#include "common/pairs.hpp"

using namespace paribus;

struct Bandwidth : Windows {
    using Windows::Windows;
    static constexpr Spec spec() {
        return windows("bandwidth", "One way between two ranks, in windows of 64 messages.");
    }
    double figure(double ns) const { return 1e3 * window * count / ns; }
};

int main(int argc, char** argv) { return run<Bandwidth>(argc, argv); }
