"""Archives made by hand, after the documented formats, for machines that were not at hand.

Not recordings: they prove that the parsers read what the kernel's and the tools' documentation
describes, not that a real machine of this kind answers so.
"""

from __future__ import annotations

from paribus.probes.archive import Archive, Unknown

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
PCI = "/sys/bus/pci/devices"


def epyc_nps4(sockets: int = 2, nodes: int = 8, cores: int = 64) -> Archive:
    """Return two 64-core processors with SMT and four NUMA nodes per socket."""
    total = sockets * cores * 2
    block = (
        "processor\t: {n}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
        "model name\t: AMD EPYC 9554 64-Core Processor\nstepping\t: 1\nmicrocode\t: 0xa101144\n"
        "cache size\t: 1024 KB\nphysical id\t: {socket}\nflags\t\t: fpu sse2 avx avx2 avx512f\n"
    )
    files: dict[str, str | Unknown] = {
        "/proc/cpuinfo": "\n".join(
            block.format(n=n, socket=n // cores % sockets) for n in range(total)
        ),
        "/proc/meminfo": "MemTotal: 1583984640 kB\nSwapTotal: 0 kB\nHugepagesize: 2048 kB\n",
        f"{CPU}/online": f"0-{total - 1}\n",
        f"{CPU}/isolated": "\n",
        f"{CPU}/smt/control": "on\n",
        f"{CPU}/smt/active": "1\n",
        f"{CPU}/cpufreq/boost": "1\n",
        f"{CPU}/cpuidle/current_driver": "acpi_idle\n",
        "/sys/class/dmi/id/sys_vendor": "Supermicro\n",
        "/sys/class/dmi/id/product_name": "AS-2125HS-TNR\n",
        "/sys/class/dmi/id/bios_version": "1.8\n",
        "/proc/sys/kernel/numa_balancing": "1\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "/sys/devices/system/edac/mc/mc0/mc_name": "F19h_M10h\n",
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=0-0 ro mitigations=off amd_pstate=active\n",
    }
    for n in range(total):
        core = n % (total // 2)
        base = f"{CPU}/cpu{n}"
        files[f"{base}/topology/physical_package_id"] = f"{core // cores}\n"
        files[f"{base}/topology/thread_siblings_list"] = f"{core},{core + total // 2}\n"
        files[f"{base}/cpufreq/scaling_driver"] = "amd-pstate-epp\n"
        # One core was left behind when the governor was set: such a machine must not look uniform.
        files[f"{base}/cpufreq/scaling_governor"] = "powersave\n" if n == 77 else "performance\n"
        files[f"{base}/cpufreq/scaling_max_freq"] = "3762988\n"
    for node in range(nodes):
        first = node * sockets * cores // nodes
        last = first + sockets * cores // nodes - 1
        files[f"{NODE}/node{node}/cpulist"] = (
            f"{first}-{last},{first + total // 2}-{last + total // 2}\n"
        )
        files[f"{NODE}/node{node}/meminfo"] = f"Node {node} MemTotal: {197998080} kB\n"
        files[f"{NODE}/node{node}/distance"] = " ".join(
            "10" if node == other else "12" if node // 4 == other // 4 else "32"
            for other in range(nodes)
        )
    for dimm in range(24):
        base = f"/sys/devices/system/edac/mc/mc0/dimm{dimm}/"
        files[base + "dimm_mem_type"] = "Registered-DDR5\n"
        files[base + "dimm_edac_mode"] = "S4ECD4ED\n"
    return Archive(files, host="node0")


def pci_device(
    files: dict[str, str | Unknown],
    links: dict[str, str],
    path: str,
    kind: str,
    identifier: str,
    width: str = "16",
    speed: str = "32.0 GT/s PCIe",
    node: str = "0",
) -> None:
    """Add a device with the address at the end of `path`; `identifier` is VENDOR:DEVICE."""
    address = path.rpartition("/")[2]
    vendor, device = identifier.split(":")
    values = {"class": kind, "vendor": f"0x{vendor}", "device": f"0x{device}", "numa_node": node}
    values |= {"subsystem_vendor": f"0x{vendor}", "subsystem_device": "0x0001"}
    values |= {"current_link_width": width, "max_link_width": "16"}
    values |= {"current_link_speed": speed, "max_link_speed": "32.0 GT/s PCIe"}
    for name, value in values.items():
        files[f"{PCI}/{address}/{name}"] = value + "\n"
    links[f"{PCI}/{address}"] = path


PFC = """{"pfc_cap":8,"macsec_bypass":false,"delay":7,
"prio_pfc":[false,false,false,true,false,false,false,false]}"""
ETS = """{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[50,0,0,50,0,0,0,0],
"pg_bw":[0,0,0,0,0,0,0,0],"tc_tsa":["ets","ets","ets","ets","ets","ets","strict","ets"],
"prio_tc":[0,0,0,3,0,0,6,0],"reco_tc_bw":[0,0,0,0,0,0,0,0],"reco_tc_tsa":["strict","strict",
"strict","strict","strict","strict","strict","strict"],"reco_prio_tc":[0,0,0,0,0,0,0,0]}"""


def infiniband() -> Archive:
    """Return an InfiniBand adapter with one port down to half its lanes, and a RoCE adapter."""
    files: dict[str, str | Unknown] = {}
    links: dict[str, str] = {}
    root = "/sys/devices/pci0000:40/0000:40:01.1"
    pci_device(files, links, root, "0x060400", "1022:14ab", width="16")
    other = "/sys/devices/pci0000:80/0000:80:01.1/0000:81:00.0"
    ports = (
        ("mlx5_0", f"{root}/0000:41:00.0", "InfiniBand", "400 Gb/sec (4X NDR)", "8"),
        ("mlx5_1", other, "Ethernet", "100 Gb/sec (4X EDR)", "16"),
    )
    for name, path, layer, rate, width in ports:
        pci_device(files, links, path, "0x020700", "15b3:1021", width=width)
        card, port = f"/sys/class/infiniband/{name}/", f"/sys/class/infiniband/{name}/ports/1/"
        files |= {card + "fw_ver": "28.39.1002\n", card + "hca_type": "MT4129\n"}
        files |= {card + "board_id": "MT_0000000838\n", card + "node_type": "1: CA\n"}
        files |= {card + "hw_rev": "0\n", port + "link_layer": f"{layer}\n"}
        files |= {port + "rate": f"{rate}\n", port + "state": "4: ACTIVE\n"}
        files |= {port + "phys_state": "5: LinkUp\n", port + "counters/symbol_error": "3\n"}
        files[port + "counters/port_xmit_data"] = "123456789\n"
        files[port + "hw_counters/np_cnp_sent"] = "17\n" if layer == "Ethernet" else Unknown.ABSENT
        keys = ("0xffff", "0x8001") if layer == "InfiniBand" else ("0xffff", "0x0000")
        for n, key in enumerate(keys):
            files[f"{port}pkeys/{n}"] = key + "\n"
        types = ("IB/RoCE v1", "RoCE v2") if layer == "Ethernet" else ("IB/RoCE v1",)
        for n in range(8):
            known = n < len(types)
            files[f"{port}gid_attrs/types/{n}"] = types[n] if known else Unknown.UNSUPPORTED
        links[card + "device"] = path
        links[card + "device/driver"] = "/sys/bus/pci/drivers/mlx5_core"
        if layer == "Ethernet":
            files[port + "gid_attrs/ndevs/0"] = "ens2np0\n"
    for name, kind, mtu, speed, path in (
        ("ibs1", "32", "2044", "400000", ports[0][1]),
        ("ens2np0", "1", "9000", "100000", ports[1][1]),
        ("lo", "772", "65536", "", ""),
    ):
        base = f"/sys/class/net/{name}/"
        files |= {base + "type": kind, base + "mtu": mtu, base + "operstate": "up\n"}
        files[base + "speed"] = speed or Unknown.UNSUPPORTED
        if path:
            links |= {
                base + "device": path,
                base + "device/driver": "/sys/bus/pci/drivers/mlx5_core",
            }
    for point in ("np", "rp"):
        for priority in range(8):
            name = f"/sys/class/net/ens2np0/ecn/roce_{point}/enable/{priority}"
            files[name] = "1\n" if priority == 3 else "0\n"
    # The InfiniBand port's interrupts are pinned one by one, the other's may go where they like,
    # and the disk's are spread by the kernel.
    pci_device(files, links, f"{other[:-12]}0000:82:00.0", "0x010802", "144d:a80a", width="4")
    spread = {"0000:41:00.0": ["0", "1", "2", "2"], "0000:81:00.0": ["0-127"] * 3}
    spread["0000:82:00.0"] = ["0-63", "64-127"]
    interrupts, number = [], 96
    for address, lists in spread.items():
        interrupts.append(" ".join([address, *map(str, range(number, number + len(lists)))]))
        for cpus in lists:
            files[f"/proc/irq/{number}/smp_affinity_list"] = cpus + "\n"
            number += 1
    files["/sys/class/infiniband/mlx5_1/tc/1/traffic_class"] = "Global tclass=106\n"
    manager = "/sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_"
    files |= {manager + "mode": "RoCE v2\n", manager + "tos": "106\n"}
    outputs = {
        "i": "driver: mlx5_core\nversion: 5.15.0\nfirmware-version: 28.39.1002\n",
        "k": """Features for ens2np0:
tx-checksumming: on
generic-receive-offload: on
large-receive-offload: off [fixed]
""",
        "g": """Ring parameters for ens2np0:
Pre-set maximums:
RX:\t\t8192
TX:\t\t8192
Current hardware settings:
RX:\t\t1024
RX Mini:\tn/a
TX:\t\t1024
""",
        "a": "Pause parameters for ens2np0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n",
    }
    tools = {f"ethtool-{option}-ens2np0": (0, text) for option, text in outputs.items()}
    tools |= {
        "ethtool-l-ens2np0": (1, "netlink error: Operation not permitted\nPermission denied"),
        "dcb-pfc-ens2np0": (0, PFC),
        "dcb-ets-ens2np0": (0, ETS),
        "dcb-app-ens2np0": (0, '{"default_prio":[0],"dscp_prio":[[26,3],[48,6]]}'),
        "ucx_info": (0, "# Library version: 1.17.0\n# Library path: /usr/lib64/libucs.so.0\n"),
        "fi_info": (0, "fi_info: 1.21.0\nlibfabric: 1.21.0\nlibfabric api: 1.21\n"),
        "dmidecode": (1, "/sys/firmware/dmi/tables/smbios_entry_point: Permission denied\n"),
    }
    reported = {"interrupts": interrupts, "queues": ["ens2np0 63 63", "ibs1 64 32", "lo 1 1"]}
    return Archive(files, tools, links, reported, host="node0")


def cgroup_v2() -> Archive:
    """Return a process three groups deep, the strictest CPU limit above it, memory below."""
    root = "/sys/fs/cgroup"
    slice_, job = f"{root}/system.slice", f"{root}/system.slice/slurmstepd.scope/job_7"
    files: dict[str, str | Unknown] = {
        "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7\n",
        f"{slice_}/cpu.max": "200000 100000\n",
        f"{job}/cpu.max": "max 100000\n",
        f"{slice_}/memory.max": "max\n",
        f"{job}/memory.max": "8589934592\n",
        f"{job}/memory.high": "max\n",
        f"{job}/memory.swap.max": "0\n",
        f"{job}/cpuset.cpus.effective": "0-3,64-67\n",
        f"{job}/cpuset.mems.effective": "0\n",
        f"{job}/cpu.weight": "100\n",
        f"{job}/pids.max": Unknown.DENIED,
        f"{slice_}/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n",
        "/proc/pressure/cpu": "some avg10=12.50 avg60=3.00 avg300=1.00 total=1234567\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "/proc/stat": "cpu  100 0 50 1000 25 5 5 40 0 0\ncpu0 1 2 3\nctxt 999\nprocs_running 3\n"
        "procs_blocked 1\n",
        "/proc/loadavg": "0.50 0.40 0.30 1/200 12345\n",
        "/run/systemd/container": "podman\n",
    }
    present = ["/run/.containerenv"]
    return Archive(
        files, lists={"present": present, "namespaces": ["pid 4026532789"]}, host="node0"
    )


def gpu_server(gpus: int = 8) -> Archive:
    """Return eight GPUs behind four switches on two sockets; one link is at half its width."""
    files: dict[str, str | Unknown] = {"/sys/module/nvidia/version": "550.90.07\n"}
    links: dict[str, str] = {}
    columns = (
        "name, driver_version, vbios_version, pstate, clocks.max.sm [MHz], clocks.max.memory [MHz],"
        " clocks.applications.graphics [MHz], clocks.applications.memory [MHz], power.limit [W],"
        " ecc.mode.current, persistence_mode, mig.mode.current, compute_mode,"
        " pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max,"
        " memory.total [MiB], memory.used [MiB], clocks.current.sm [MHz],"
        " clocks.current.memory [MHz], clocks_event_reasons.active,"
        " ecc.errors.uncorrected.volatile.total, pci.bus_id, temperature.gpu, utilization.gpu [%],"
        " remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending,"
        " remapped_rows.failure"
    )
    rows = [columns]
    users = ["gpu_bus_id, pid, used_gpu_memory [MiB]"]
    matrix = ["\t" + "\t".join(f"GPU{n}" for n in range(gpus)) + "\tCPU Affinity\tNUMA Affinity"]
    for n in range(gpus):
        switch = n // 2
        domain = (
            f"/sys/devices/pci0000:{0x10 * (switch + 1):02x}/0000:{0x10 * (switch + 1):02x}:01.1"
        )
        upstream = f"{domain}/0000:{0x11 + 0x10 * switch:02x}:00.0"
        port = f"{upstream}/0000:{0x12 + 0x10 * switch:02x}:0{n % 2}.0"
        bus = f"{0x13 + 0x10 * switch + n % 2:02x}"
        half = n == 5
        for path in (domain, upstream, port):
            pci_device(files, links, path, "0x060400", "1000:c030", node=str(n // 4))
        pci_device(
            files, links, f"{port}/0000:{bus}:00.0", "0x030200", "10de:2330",
            width="8" if half else "16", node=str(n // 4),
        )  # fmt: skip
        rows.append(
            "NVIDIA H100 80GB HBM3, 550.90.07, 96.00.89.00.01, P0, 1980 MHz, 2619 MHz, 1980 MHz,"
            f" 2619 MHz, 700.00 W, Enabled, Enabled, Disabled, Default, 5, 5, {8 if half else 16},"
            f" 16, 81559 MiB, {530 if n == 2 else 1} MiB, 345 MHz, 2619 MHz, 0x0000000000000001,"
            f" [N/A], 00000000:{bus.upper()}:00.0, {31 + n}, 0 %, 0, {int(n == 7)}, No, No"
        )
        if n == 2:
            users.append(f"00000000:{bus.upper()}:00.0, 4711, 520 MiB")
        regions = [0x1000000, 0, 0x2000000000, 0, 0x2000000]
        files[f"{PCI}/0000:{bus}:00.0/resource"] = "".join(
            f"0x{(n + 1) << 40:016x} 0x{((n + 1) << 40) + size - 1:016x} 0x000000000014220c\n"
            if size
            else f"0x{0:016x} 0x{0:016x} 0x{0:016x}\n"
            for size in regions
        )
        cells = ["X" if n == other else "NV18" for other in range(gpus)]
        matrix.append("\t".join([f"GPU{n}", *cells, "0-47", str(n // 4)]))
    tools = {"nvidia-smi": (0, "\n".join(rows)), "nvidia-topology": (0, "\n".join(matrix))}
    tools["nvidia-processes"] = (0, "\n".join(users))
    return Archive(files, tools, links, host="node0")


MACHINES = {
    "epyc-nps4": epyc_nps4(),
    "infiniband": infiniband(),
    "cgroup-v2": cgroup_v2(),
    "gpu-server": gpu_server(),
}
