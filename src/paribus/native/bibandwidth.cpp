// Both ways at once: bytes per second that windows of messages carry between two ranks.
#include "common/pairs.hpp"

using namespace paribus;

struct Bibandwidth : Windows {
    using Windows::Windows;
    static constexpr Spec spec() {
        return windows("bibandwidth",
                       "Both ways at once between two ranks, in windows of 64 messages.");
    }
    void call(long) { both_ways(); }
    std::size_t expected() const { return size; }
    double figure(double ns) const { return 1e3 * 2 * window * count / ns; }
};

int main(int argc, char** argv) { return run<Bibandwidth>(argc, argv); }
