// Memory bandwidth: copy, scale, add, triad and dot of STREAM and BabelStream, all ranks at once.
#include "common/loops.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Spec spec = loops::spec("memory_bandwidth",
                            "Memory bandwidth of five simple loops, all ranks at once.");
    spec.sizes = "";
    spec.samples = 10;
    spec.least_samples = 3;
    spec.max_case_s = 0.5;
    Session session(spec);
    session.start(argc, argv);
    for (const long bytes : session.arguments.bytes)
        loops::measure(session, bytes, loops::chosen());
    if (session.arguments.bytes.empty()) {
        const long bytes = array_beyond_caches(session);
        session.refuse_larger(
            3.0 * static_cast<double>(bytes),
            "three arrays of " + mib(static_cast<double>(bytes)) + ", four times the caches, do");
        loops::measure(session, bytes, loops::chosen());
    }
    return session.finish();
}
