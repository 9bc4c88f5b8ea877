// The NAS Parallel Benchmarks, one program: the first argument names the benchmark.
#include <cstdio>
#include <cstring>

#include "npb/bt.hpp"
#include "npb/cg.hpp"
#include "npb/ep.hpp"
#include "npb/ft.hpp"
#include "npb/is.hpp"
#include "npb/lu.hpp"
#include "npb/mg.hpp"
#include "npb/sp.hpp"

using namespace paribus::npb;

int main(int argc, char** argv) {
    const struct {
        const char* name;
        int (*launch)(int, char**);
    } known[] = {
        {Ep::kind.name, launch<Ep>}, {Is::kind.name, launch<Is>}, {Cg::kind.name, launch<Cg>},
        {Mg::kind.name, launch<Mg>}, {Ft::kind.name, launch<Ft>}, {Lu::kind.name, launch<Lu>},
        {Sp::kind.name, launch<Sp>}, {Bt::kind.name, launch<Bt>},
    };
    for (const auto& one : known)
        if (argc > 1 && std::strcmp(argv[1], one.name) == 0) return one.launch(argc - 1, argv + 1);
    std::fputs("npb: the first argument must be one of ep, is, cg, mg, ft, lu, sp, bt\n", stderr);
    return 2;
}
