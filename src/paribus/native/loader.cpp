// Loader: the storm of opening many shared libraries from all ranks at once, as Python
// applications do at start-up (the load that Pynamic makes).
#include <dlfcn.h>
#include <unistd.h>

#include "common/kernel.hpp"

using namespace paribus;

namespace {

using Function = int (*)(int);

std::string numbered(const char* format, long library, long function = 0) {
    char text[64];
    std::snprintf(text, sizeof text, format, library, function);
    return text;
}

void keep(Session& session, const char* metric, const std::string& where, double ms) {
    Series series{where, metric, 1, {0}, {}};
    MPI_Allreduce(&ms, series.samples.data(), 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    session.keep(std::move(series));
}

double ms_since(std::int64_t start) { return 1e-6 * static_cast<double>(now_ns() - start); }

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "loader";
    spec.summary = "Start-up, loading of shared libraries and first calls, slowest rank.";
    spec.unit = "ms";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.libraries = true;
    Session session(spec);
    session.start(argc, argv);
    const long count = session.arguments.count, functions = session.arguments.functions;
    const std::string where = Object().add("libraries", count).add("functions", functions).text();
    std::vector<std::string> paths;
    std::string missing;
    for (long l = 0; l < count; ++l) {
        paths.push_back(session.arguments.libraries + numbered("/libparibus_%04ld.so", l));
        if (missing.empty() && access(paths.back().c_str(), R_OK) != 0)
            missing = "rank " + std::to_string(session.rank) + " cannot read " + paths.back();
    }
    session.give_up_if(missing);

    std::vector<void*> handles;
    std::string failure;
    start_together(session.rank, session.ranks);
    std::int64_t start = now_ns();
    for (const std::string& path : paths) {
        handles.push_back(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
        if (handles.back() == nullptr) {
            failure = dlerror();
            break;
        }
    }
    const double load_ms = ms_since(start);
    session.give_up_if(failure);

    std::vector<int> returned(static_cast<std::size_t>(count * functions), -1);
    std::size_t next = 0;
    start_together(session.rank, session.ranks);
    start = now_ns();
    for (long l = 0; l < count; ++l)
        for (long f = 0; f < functions; ++f) {
            void* symbol = dlsym(handles[static_cast<std::size_t>(l)],
                                 numbered("paribus_%04ld_%04ld", l, f).c_str());
            if (symbol != nullptr)
                returned[next] = reinterpret_cast<Function>(symbol)(static_cast<int>(f));
            ++next;
        }
    const double call_ms = ms_since(start);

    if (session.arguments.corrupt && session.rank == session.ranks - 1) --returned.back();
    long wrong = -1;
    for (long i = 0; i < count * functions && wrong < 0; ++i) {
        const long l = i / functions, f = i % functions;
        if (returned[static_cast<std::size_t>(i)] != f + l * 1000 + f) wrong = i;
    }
    session.verify(where, wrong, returned.size());
    keep(session, "startup", where, session.init_ms);
    keep(session, "load", where, load_ms);
    keep(session, "first_call", where, call_ms);
    return session.finish();
}
