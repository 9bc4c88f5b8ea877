// Loader: the storm of opening many shared libraries, or importing many Python modules, from all
// ranks at once, as Python applications do at start-up (the load that Pynamic makes).
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "common/repeated.hpp"

using namespace paribus;

namespace {

using Function = int (*)(int);

constexpr Option options[] = {
    {"kind", "libraries", "what to load", 0, 0, false, {"libraries", "python"}}, {}};

std::string numbered(const char* format, long library, long function = 0) {
    char text[64];
    std::snprintf(text, sizeof text, format, library, function);
    return text;
}

// The slowest rank's milliseconds.
struct Took {
    double startup_ms, load_ms, call_ms;
};

void check(Session& session, const std::string& where, std::vector<long> returned) {
    if (session.arguments.corrupt && session.rank == session.ranks - 1) --returned.back();
    long wrong = -1;
    for (std::size_t i = 0; i < returned.size() && wrong < 0; ++i) {
        const auto at = static_cast<long>(i), functions = session.arguments.functions;
        const long l = at / functions, f = at % functions;
        if (returned[i] != f + l * 1000 + f) wrong = at;
    }
    session.verify(where, wrong, returned.size());
}

Took load_libraries(Session& session, const std::string& where) {
    const long count = session.arguments.count, functions = session.arguments.functions;
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
    const double load_s = slowest_s(session, [&] {
        for (const std::string& path : paths) {
            handles.push_back(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
            if (handles.back() == nullptr) {
                failure = dlerror();
                break;
            }
        }
    });
    session.give_up_if(failure);

    std::vector<long> returned(static_cast<std::size_t>(count * functions), -1);
    const double call_s = slowest_s(session, [&] {
        std::size_t next = 0;
        for (long l = 0; l < count; ++l)
            for (long f = 0; f < functions; ++f, ++next) {
                void* symbol = dlsym(handles[static_cast<std::size_t>(l)],
                                     numbered("paribus_%04ld_%04ld", l, f).c_str());
                if (symbol != nullptr)
                    returned[next] = reinterpret_cast<Function>(symbol)(static_cast<int>(f));
            }
    });
    check(session, where, returned);
    double startup_ms = 0;
    MPI_Allreduce(&session.init_ms, &startup_ms, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {startup_ms, 1e3 * load_s, 1e3 * call_s};
}

// What Python carries out: one step for each line that it gets, and a line after each.
constexpr const char* script = R"(
import sys
folder, count, functions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, folder)
def answer(line):
    print(line, flush=True)
    sys.stdin.readline() or sys.exit()
answer("ready")
modules = [__import__("paribus_%04d" % m) for m in range(count)]
answer("imported")
names = [(m, f, "paribus_%04d_%04d" % (m, f)) for m in range(count) for f in range(functions)]
answer("named")
returned = [getattr(modules[m], name)(f) for m, f, name in names]
answer("called")
print(*returned, flush=True)
)";

// A child that waits to become Python. It is forked before MPI is started: some networks forbid
// that afterwards.
class Interpreter {
public:
    Interpreter() {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
        child_ = fork();
        if (child_ == 0) become_python(ends);
        close(ends[0]);
        to_ = ends[1];
    }
    ~Interpreter() {
        close(to_);
        if (child_ > 0) waitpid(child_, nullptr, 0);
    }
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    void say(const std::string& line) const {
        if (send(to_, line.data(), line.size(), MSG_NOSIGNAL) < 0) return;  // hear() sees it
    }
    // The next line without its end, "" where there will be none.
    std::string hear() const {
        std::string line;
        for (char c = 0; read(to_, &c, 1) == 1 && c != '\n';) line += c;
        return line;
    }

private:
    [[noreturn]] static void become_python(const int* ends) {
        close(ends[1]);
        std::string words[3];  // directory, modules, functions
        char c = 0;
        for (std::string& word : words)
            for (c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) word += c;
        if (words[2].empty()) _exit(0);  // nothing is to be imported
        dup2(ends[0], 0);
        dup2(ends[0], 1);
        execlp("python3", "python3", "-c", script, words[0].c_str(), words[1].c_str(),
               words[2].c_str(), static_cast<char*>(nullptr));
        std::fprintf(stderr, "loader: python3: %s\n", std::strerror(errno));
        _exit(127);
    }
    pid_t child_ = -1;
    int to_ = -1;
};

Took import_modules(Session& session, const std::string& where, const Interpreter& python) {
    const Arguments& asked = session.arguments;
    std::string heard;
    // The slowest rank's milliseconds from a line to the answer to it.
    const auto ms = [&](const std::string& said, const char* answer) {
        const double seconds = slowest_s(session, [&] {
            python.say(said);
            heard = python.hear();
        });
        session.give_up_if(heard == answer ? ""
                                           : "python3 of rank " + std::to_string(session.rank) +
                                                 " gave up, for the reason above");
        return 1e3 * seconds;
    };
    const double startup = ms(asked.libraries + '\n' + std::to_string(asked.count) + '\n' +
                                  std::to_string(asked.functions) + '\n',
                              "ready");
    const double load = ms("\n", "imported");
    ms("\n", "named");
    const double call = ms("\n", "called");
    python.say("\n");
    heard = python.hear();
    std::vector<long> returned;
    char* next = &heard[0];
    for (long i = 0; i < asked.count * asked.functions; ++i)
        returned.push_back(std::strtol(next, &next, 10));
    check(session, where, returned);
    return {startup, load, call};
}

}  // namespace

int main(int argc, char** argv) {
    const Interpreter interpreter;
    Spec spec;
    spec.name = "loader";
    spec.summary = "Start-up, loading of libraries or modules and first calls, slowest rank.";
    spec.unit = "ms";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.libraries = true;
    spec.options = options;
    Session session(spec);
    session.start(argc, argv);
    const bool python = session.arguments.text.at("kind") == "python";
    const std::string where = Object()
                                  .add(python ? "modules" : "libraries", session.arguments.count)
                                  .add("functions", session.arguments.functions)
                                  .text();
    const Took took =
        python ? import_modules(session, where, interpreter) : load_libraries(session, where);
    session.keep({where, "startup", 1, {took.startup_ms}, {}});
    session.keep({where, "load", 1, {took.load_ms}, {}});
    session.keep({where, "first_call", 1, {took.call_ms}, {}});
    return session.finish();
}
