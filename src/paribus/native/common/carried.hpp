// Which way messages really go: seen at the counters of the interfaces, whatever was asked for.
#pragma once

#include <string>

namespace paribus {

// Sends 512 KiB from rank 0 to the rank `other` and back, several times, and returns on rank 0 what
// counted them: "rdma", "loopback", "network" (an interface), else "memory" on one machine and ""
// across machines, where an adapter went round the counters. Collective; "" if `other` is rank 0.
//
// Others may use the same interfaces, so windows in which messages go alternate with quiet ones of
// the same length. A way that counted less than was sent, in any window in which messages went, did
// not carry them. If all that it counted were others' bytes, windows of either kind would be the
// first to count less with equal chance: that ten quiet ones do and no other has a chance of 2^-10.
// Where neither is seen in three seconds: "unclear", which is no difference and no equality.
// Counters of an adapter may be late, by more than a window: of rdma the sum over ten pairs counts.
std::string carried(int rank, int other, bool one_machine);

}  // namespace paribus
