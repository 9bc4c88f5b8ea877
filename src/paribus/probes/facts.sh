# What can be read of a machine by an ordinary user with sh, grep, sed and awk: one framed answer.
# Usage: sh facts.sh NONCE [files|all [PROGRAM]]        (the frame: docs/facts.md, "the stream")
# Every line carries NONCE, host and number, so that what is not ours, lost or mixed up is noticed.
# Nothing is written, and nothing can hang: whatever does not answer is ended and named.
nonce=${1:?a nonce} depth=${2:-all} program=${3:-}
umask 077
IFS= read -r host </proc/sys/kernel/hostname 2>/dev/null || host=${HOSTNAME:-unknown}
case $host in *[!A-Za-z0-9._-]*) host=unnamed ;; esac

# section NAME...: starts a part of the answer; nothing read from a file can contain the nonce.
section() { printf '\n::%s %s\n' "$nonce" "$*"; }

# bounded SECONDS COMMAND...: its status, 137 if it had to be ended. No orphan keeps our output.
bounded() {
    seconds=$1
    shift
    "$@" </dev/null &
    child=$!
    {
        trap 'kill -9 $!; wait $!; exit' TERM  # -9: a shell that is about to exec swallows TERM
        sleep "$seconds" &
        wait $!
        kill -9 $child
    } >/dev/null 2>&1 3>&- &
    guard=$!
    wait $child 2>/dev/null
    status=$?
    kill $guard 2>/dev/null
    wait $guard 2>/dev/null
    return $status
}

# read_files PATH...: "PATH:line" for every line, then what could not be read, as grep says it.
# What came before a file that blocks may be lost with it: then each is tried alone, and named.
read_files() {
    section asked
    printf '%s\n' "$@"
    section files
    errors=$(bounded 3 grep -a -H -m 40000 '' "$@" 2>&1 1>&3)
    if [ $? -gt 128 ]; then
        section again
        errors= blocked=0
        for path in "$@"; do
            if [ $blocked -lt 8 ] && [ -e "$path" ]; then
                bounded 1 grep -a -c '' "$path" >/dev/null 2>&1
                if [ $? -gt 128 ]; then
                    blocked=$((blocked + 1)) errors="$errors
grep: $path: Timed out"
                    continue
                fi
            elif [ -e "$path" ]; then
                errors="$errors
grep: $path: Timed out"
                continue
            fi
            wrong=$(bounded 1 grep -a -H -m 40000 '' "$path" 2>&1 1>&3)
            errors="$errors
$wrong"
        done
    fi
    section errors
    printf '%s\n' "$errors"
}

# tool NAME COMMAND...: the first 64 KiB of what it prints, and its status; absent if there is none.
tool() {
    name=$1
    shift
    if ! command -v "$1" >/dev/null 2>&1; then
        section absent "$name"
        return
    fi
    section tool "$name"
    { bounded 3 "$@" 2>&1 3>&-; code=$?; echo; echo "::status $code"; } | head -c 65536
}

# links DIRECTORY...: where symbolic links to directories lead; no process is started for it.
links() {
    section links
    for link in "$@"; do
        [ -d "$link" ] && cd -P "$link" 2>/dev/null && printf '%s %s\n' "$link" "$PWD"
    done
    cd "$home" 2>/dev/null || cd /
}

# environment: allowed variables with their values, the names of all others, nothing that looks
# like a secret. Open MPI repeats our own arguments here, the nonce too: that value goes as well.
# (Redirected, /proc/self would be the shell before it became the command.)
environment() {
    section environment
    cat /proc/self/environ 2>/dev/null | tr '\n\000' '\037\n' | LC_ALL=C sed -E \
        -e '/^[^=]*(@SECRET@)[^=]*=/s/=.*/=(redacted)/' \
        -e '/^(@ALLOWED@)/!s/=.*//' -e "/$nonce/s/=.*//"
}

# paths_of_groups: the files of our control groups and of all groups above them, v1 and v2.
paths_of_groups() {
    unset IFS
    while IFS=: read -r number controllers group; do
        case $number$controllers in
        0) set -- /sys/fs/cgroup /sys/fs/cgroup/unified
            names="cpu.max cpu.weight cpu.stat cpuset.cpus.effective cpuset.mems.effective memory.max memory.high memory.low memory.swap.max io.max io.weight pids.max" ;;
        *cpuset*) set -- /sys/fs/cgroup/cpuset "/sys/fs/cgroup/$controllers"
            names="cpuset.effective_cpus cpuset.effective_mems cpuset.cpus cpuset.mems cpuset.cpu_exclusive" ;;
        *cpu*) set -- "/sys/fs/cgroup/$controllers" "/sys/fs/cgroup/${controllers%%,*}"
            names="cpu.cfs_quota_us cpu.cfs_period_us cpu.shares cpu.stat cpu.rt_runtime_us" ;;
        *memory*) set -- /sys/fs/cgroup/memory
            names="memory.limit_in_bytes memory.soft_limit_in_bytes memory.memsw.limit_in_bytes memory.swappiness" ;;
        *pids*) set -- /sys/fs/cgroup/pids; names=pids.max ;;
        *) continue ;;
        esac
        for mount in "$@"; do
            [ -d "$mount" ] || continue
            part=${group%/}
            while :; do
                for name in $names; do
                    [ -e "$mount$part/$name" ] && printf '%s\n' "$mount$part/$name"
                done
                [ -n "$part" ] || break
                part=${part%/*}
            done
            break
        done
    done </proc/self/cgroup 2>/dev/null
}

# paths_of_devices: PCI devices that matter to a measurement (network, display, accelerator,
# NVMe, InfiniBand, bridge) by the class that each states.
paths_of_devices() {
    for class in $(grep -a -l -E '^0x(02|03|0108|0604|0b40|12)' /sys/bus/pci/devices/*/class 2>/dev/null); do
        for name in class vendor device subsystem_vendor subsystem_device current_link_speed \
            current_link_width max_link_speed max_link_width numa_node; do
            printf '%s\n' "${class%/class}/$name"
        done
    done
}

# libraries: what the loader gives this program here, the files behind the names, and their
# build-ids: the ELF note is within the first 2 KiB of what today's linkers write.
libraries() {
    tool ldd ldd "$program"
    set -- "$program" $(bounded 3 ldd "$program" 2>/dev/null 3>&- |
        sed -n 's/^.*=> \(\/[^ ]*\) .*/\1/p')
    section libraries
    printf '%s\n' "$@"
    section real
    readlink -f "$@" 2>/dev/null || for file in "$@"; do readlink -f "$file"; done
    section build_ids
    head -q -c 2048 "$@" 2>/dev/null | od -An -v -tx1 | awk '
        { gsub(/ /, ""); hex = hex $0 }
        NR % 128 == 0 { at = match(hex, /04000000..00000003000000474e5500/)
            print at ? substr(hex, at, 96) : "-"; hex = "" }'
}

tools() {
    tool mpirun mpirun --version
    tool ucx_info ucx_info -v
    tool fi_info fi_info --version
    tool qdisc tc qdisc show
    tool nvidia-smi nvidia-smi --format=csv --query-gpu=@QUERY@
    ports=
    while read -r port target rest; do  # a container's interface has no device, but the route
        [ "$target" = 00000000 ] && [ ! -e "/sys/class/net/$port/device" ] && ports="$port $ports"
    done </proc/net/route 2>/dev/null
    for port in $ports /sys/class/net/*/device; do
        port=${port%/device} port=${port##*/}
        [ -e "/sys/class/net/$port" ] || continue
        for what in i k g c a l; do tool "ethtool-$what-$port" ethtool -$what "$port"; done
        [ "${asked:=0}" -lt 8 ] || break
        asked=$((asked + 1))
    done
}

# access_control: the configuration space of every bridge, which only root sees whole.
access_control() {
    section bridges
    for bridge in $(grep -a -l '^0x0604' /sys/bus/pci/devices/*/class 2>/dev/null); do
        bridge=${bridge%/class}
        if [ -w "$bridge/config" ]; then
            printf '%s %s\n' "${bridge##*/}" "$(od -An -v -tx1 -j256 -N3840 "$bridge/config" | tr -d ' \n')"
        else
            printf '%s denied\n' "${bridge##*/}"
        fi
    done
}

deeper() {
    tool ompi_info ompi_info --parsable -c
    tool fi_providers fi_info -l
    tool ucx_devices ucx_info -d
    tool detect-vm systemd-detect-virt --vm
    tool detect-container systemd-detect-virt --container
    tool dmidecode dmidecode -t memory
    tool chronyc chronyc -c tracking
    tool nvidia-topology nvidia-smi topo -m
}

answer() {
    home=$PWD
    section begin 1 "$depth"
    environment
    export LC_ALL=C LANG=C PATH="$PATH:/usr/sbin:/sbin"
    section directories
    printf 'working %s\ntemporary %s\n' "$PWD" "${TMPDIR:-/tmp}"
    section namespaces
    ls -l /proc/self/ns 2>/dev/null | sed -n 's/.* \([a-z_]*\) -> [a-z_]*:\[\([0-9]*\)\]$/\1 \2/p'
    set --
    for path in /.dockerenv /run/.containerenv /.singularity.d /dev/kvm /dev/shm /etc/machine-id; do
        [ -e "$path" ] && set -- "$@" "$path"
    done
    section present
    printf '%s\n' "$@"
    IFS='
'
    set -- $(paths_of_groups) $(paths_of_devices) \
@PATHS@
    unset IFS
    read_files "$@"
    links /sys/class/net/*/device /sys/class/net/*/device/driver /sys/class/net/*/master \
        /sys/class/infiniband/*/device /sys/class/drm/card*/device /sys/bus/pci/devices/* \
        /sys/class/drm/card*/device/driver
    [ "$depth" = files ] || { tools; access_control; }
    [ -z "$program" ] || libraries
    [ "$depth" != deep ] || deeper
    section end
}

# The processors of a node repeat each other, and a counter per interrupt is nobody's business.
{ answer; } 3>&1 2>/dev/null | awk -v tag="$nonce $host" '
    /^\/proc\/cpuinfo:/ && (/:(cpu MHz|apicid|initial apicid)/ || seen[$0]++) || /^\/proc\/stat:(intr|softirq|cpu[0-9])/ { next }
    length($0) > 65536 { $0 = substr($0, 1, 65536) "::cut" }
    { gsub(/\r/, "\037"); size += length($0) + 32; line++ }
    size > 8388608 { print tag, line, "::cut"; exit }
    { print tag, line, $0 }'
