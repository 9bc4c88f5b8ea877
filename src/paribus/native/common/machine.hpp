// What only a rank can say of the machine it is on, read from the kernel.
#pragma once

#include <string>
#include <vector>

namespace paribus {

std::string read_text(const char* path);

std::string host_name();

// Six hex digits of the FNV-1a hash of the boot id: equal on one running kernel, containers
// included, and no more telling than that.
std::string boot_hash();

// The cores that this thread may use, in order.
std::vector<int> allowed_cores();

// Restricts the calling thread to `cores`; false where the kernel or a cpuset forbids it.
bool stay_on(const std::vector<int>& cores);

// "0-3,8": the kernel's own way to write a list of cores.
std::string core_list(const std::vector<int>& cores);

long soft_limit(int resource);

// What the processor says of the hypervisor that it runs under ("KVMKVMKVM"); "" without one.
std::string hypervisor();

// Where this process is among the control groups: its path in version 2, else in version 1's cpu.
std::string control_group();

// Bytes that can still be allocated here: free memory, or less where a control group says so.
double available_bytes();

// What the kernel has counted so far: for this process, and time stolen from the cores that it may
// use, their mean.
struct Usage {
    double cpu_s = 0;
    long involuntary = 0;
    double steal_s = 0;
};

Usage usage_so_far();

}  // namespace paribus
