// Triad: memory bandwidth of all ranks at once, a[i] = b[i] + s * c[i] on arrays of their own.
#include "common/loops.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Spec spec =
        loops::spec("triad", "Memory bandwidth of a[i] = b[i] + s * c[i], all ranks at once.");
    spec.sizes = "67108864";
    Session session(spec);
    session.start(argc, argv);
    for (const long bytes : session.arguments.bytes)
        loops::measure(session, bytes, loops::chosen("triad"));
    return session.finish();
}
