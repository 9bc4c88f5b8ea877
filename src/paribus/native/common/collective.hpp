// The case loop that the collectives share.
#pragma once

#include <string>
#include <utility>

#include "likes.hpp"
#include "sampling.hpp"

namespace paribus {

// Measures one case and keeps it as `time` in us. `call(i)` is this rank's part of operation `i`
// of a sample; `prepare` fills the buffers anew and `check` proves what came: both are outside the
// measured time, and the second round shows that the data are not left over from the first.
template <class Call, class Prepare, class Check>
void measure_collective(Session& session, const std::string& case_text, long bytes, Call call,
                        Prepare prepare, Check check) {
    const auto operation = [&](long n) {
        for (long i = 0; i < n; ++i) {
            call(i);
            session.delay.spend();
        }
    };
    prepare();
    Series series =
        session.like(Like::paribus)
            ? sample_together(session, operation, case_text)
            : sample_together_like(session, operation,
                                   counts_of(session, bytes, {1000, 100}, {100, 10}), case_text);
    check();
    prepare();
    operation(1);
    check();
    series.metric = "time";
    series.unit = "us";
    for (double& sample : series.samples) sample *= 1e-3;
    session.keep(std::move(series));
}

}  // namespace paribus
