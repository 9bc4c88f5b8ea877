# What can be read of a machine by an ordinary user with sh, grep, sed and awk: one framed answer.
# Usage: sh facts.sh NONCE [files|all [PROGRAM]]        (the frame: docs/facts.md, "the stream")
# Every line carries NONCE, host and number, so that what is not ours, lost or mixed up is noticed.
# Nothing is written, and nothing can hang: whatever does not answer is ended and named.
nonce=${1:?a nonce} depth=${2:-all} program=${3:-}
umask 077
# shellcheck disable=SC3028 # where the shell does not set it, the environment may
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
        errors='' blocked=0
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
            [ $? -le 128 ] || wrong="grep: $path: Timed out"
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

# environment: the names of all variables, and the values of those that are settings by a list of
# names (* at its end: whatever follows) and no secret by their own. Open MPI repeats our own
# arguments here, the nonce too: such a value goes as well.
# (Redirected, /proc/self would be the shell before it became the command.)
environment() {
    section environment
    cat /proc/self/environ 2>/dev/null | tr '\n\000' '\037\n' | LC_ALL=C awk -v nonce="$nonce" \
        -v list="@KEPT@" '
        BEGIN {
            count = split(list, names, " ")
            for (i = 1; i <= count; i++) kept[names[i]]
        }
        function setting(name,  n) {
            if (name in kept) return 1
            for (n = length(name); n > 2; n--) if ((substr(name, 1, n) "*") in kept) return 1
            return 0
        }
        {
            at = index($0, "=")
            name = at ? substr($0, 1, at - 1) : $0
            if (!at || !setting(name) || toupper(name) ~ /@SECRET@/ || index($0, nonce)) $0 = name
            print
        }'
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
        *net_prio* | *net_cls*) set -- "/sys/fs/cgroup/$controllers" /sys/fs/cgroup/net_cls,net_prio
            names="net_prio.ifpriomap net_cls.classid" ;;
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
# NVMe, InfiniBand, bridge) by the class that each states; of network and NVMe also where their
# interrupts may go, of GPUs the windows onto their memory. Which interrupts are whose is told at once.
paths_of_devices() {
    section interrupts >&3
    count=0
    # shellcheck disable=SC2013 # their paths have no blanks
    for class in $(grep -a -l -E '@CLASSES@' /sys/bus/pci/devices/*/class 2>/dev/null); do
        device=${class%/class}
        # shellcheck disable=SC2043 # a list, once it is filled in
        for name in @DEVICE@; do
            printf '%s\n' "$device/$name"
        done
        IFS= read -r code <"$class"
        case $code in
        0x02* | 0x0108*)
            own=${device##*/}
            for irq in "$device"/msi_irqs/*; do
                irq=${irq##*/}
                [ "$irq" != '*' ] || break
                [ $count -lt 1024 ] || { own="$own cut"; break; }
                count=$((count + 1)) own="$own $irq"
                printf '%s\n' "/proc/irq/$irq/smp_affinity_list"
            done
            printf '%s\n' "$own" >&3 ;;
        0x03* | 0x12*) printf '%s\n' "$device/resource" ;;
        esac
    done
}

# queues: how many receive and transmit queues each interface has; nothing is opened for it.
queues() {
    section queues
    for port in /sys/class/net/*; do
        set -- "$port"/queues/rx-*
        received=$#
        [ -e "$1" ] || received=0
        set -- "$port"/queues/tx-*
        [ -e "$1" ] || shift
        printf '%s %s %s\n' "${port##*/}" $received $#
    done
}

# reading: every process that shows, in one line each; uptime before it. Of more than 2000 those
# from number 10000 on, without the kernel's first threads, which are most on a node of many cores;
# nothing where these are too many as well, for it would take longer than all the rest.
reading() {
    read -r now rest </proc/uptime
    printf '%s\n' "$now"
    set -- /proc/[0-9]*/stat
    [ $# -le 2000 ] || set -- /proc/[0-9][0-9][0-9][0-9][0-9]*/stat
    [ $# -gt 2000 ] || cat "$@"
} 2>/dev/null

# consumers FIRST: who had the processors since FIRST was read, by command, without us: neither what
# started us nor what that started (the other ranks), nor what we start ourselves.
consumers() {
    section consumers
    if [ ! -r /proc/1/stat ]; then
        echo denied
        return
    fi
    { printf '%s\n' "$1"; reading; } | awk -v me=$$ '
        # Most lines are the same in both readings, and are not taken apart.
        function field(line, number) {
            match(line, /.*\)/)
            split(substr(line, RLENGTH + 2), cell, " ")
            return cell[number - 2]
        }
        function ticks(line) { return line == "" ? 0 : field(line, 14) + cell[13] }
        function above(process) { return process in now ? field(now[process], 4) : 0 }
        { at = index($0, " ") }
        !at { first = last; last = $0; reading++; next }
        { process = substr($0, 1, at - 1) }
        reading == 1 { before[process] = $0; old++; next }
        { now[process] = $0; seen++ }
        before[process] != $0 { changed[process] = 1 }
        index($0, "(irqbalance)") { print "daemon irqbalance" }
        END {
            if (!seen || !old) { print "cut"; exit }
            printf "window %.0f\n", 100 * (last - first)
            top = above(me)
            if (top < 2) top = me
            for (p = top; p > 0 && deep < 64; p = above(p)) { ours[p] = 1; deep++ }
            for (p in changed) {
                used = ticks(now[p]) - ticks(before[p])
                if (used <= 0 || p in ours) continue
                deep = 0
                for (q = p; q > 1 && q != top && deep < 64; q = above(q)) deep++
                if (q == top) continue
                name = substr(now[p], index(now[p], "(") + 1)
                match(name, /.*\)/)
                name = substr(name, 1, RLENGTH - 1)
                sub(/\/.*/, "", name)
                sum[name] += used
            }
            for (n = 0; n < 8; n++) {
                best = ""
                for (name in sum) if (best == "" || sum[name] > sum[best]) best = name
                if (best == "") break
                print sum[best], best
                delete sum[best]
            }
        }'
}

# libraries: what the loader gives this program here (without a name where LD_PRELOAD or the program
# says the path; but not the loader itself), the files behind the names, and their build-ids: the ELF note is within the first 2 KiB of what today's linkers write. Of those without
# one (NVIDIA's, built by hand), size and checksum of the first and the last 256 KiB.
libraries() {
    loaded=
    if command -v ldd >/dev/null 2>&1; then
        loaded=$(bounded 3 ldd "$program" 2>&1 3>&-)
        code=$?
        section tool ldd
        printf '%s\n\n::status %s\n' "$loaded" "$code" | head -c 65536
    else
        section absent ldd
    fi
    # shellcheck disable=SC2046 # a word a library
    set -- "$program" $(printf '%s\n' "$loaded" |
        sed -n -e '/^[[:space:]]*\/[^ ]*\/ld[-.0-9][^ ]* (/d' \
            -e 's/^.*=> \(\/[^ ]*\) .*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p')
    section libraries
    printf '%s\n' "$@"
    section real
    readlink -f "$@" 2>/dev/null || for file in "$@"; do readlink -f "$file"; done
    section build_ids
    notes=$(head -q -c 2048 "$@" 2>/dev/null | od -An -v -tx1 | awk '
        { hex = hex $0 }
        NR % 128 == 0 { at = match(hex, / 04 00 00 00 .. 00 00 00 03 00 00 00 47 4e 55 00/)
            note = at ? substr(hex, at, 144) : "-"
            gsub(/ /, "", note); print note; hex = "" }')
    printf '%s\n' "$notes"
    section digests
    count=0
    for note in $notes; do
        if [ "$note" = - ] && [ $count -lt 16 ]; then
            count=$((count + 1)) size=$(wc -c <"$1")
            { head -c 262144 "$1"; tail -c 262144 "$1"; } | cksum |
                { read -r sum rest; printf '%s %s-%s\n' "$1" $((size)) "$sum"; }
        fi
        shift
    done
}

# compiler: what compilers wrote into the program: their versions, and the flags where they were told
# to (-frecord-gcc-switches).
compiler() {
    section compiler
    tail -c 8388608 "$program" 2>/dev/null | grep -a -o -E \
        'GCC: \([^)]*\) [0-9.]+|clang version [0-9.]+|GNU (C|C\+\+|Fortran)[0-9]* [0-9.]+ [ -~]*' |
        sort -u | head -n 20
}

# gpus: nvidia-smi refuses a query whole for one field that it does not know, by its name. Versions
# before 535 call the reasons "throttle" reasons, and the remapped rows had a query of their own.
gpus() {
    if ! command -v nvidia-smi >/dev/null 2>&1; then
        section absent nvidia-smi
        return
    fi
    fields=@QUERY@
    for _ in 1 2 3 4 5 6; do
        told=$(bounded 3 nvidia-smi --format=csv --query-gpu="$fields" 2>&1 3>&-)
        code=$?
        case $told in *'Field "'*'" is not a valid field'*) ;; *) break ;; esac
        field=${told#*Field \"} field=${field%%\"*}
        case $field in
        clocks_event_reasons.*) other=clocks_throttle_reasons.${field#*.} ;;
        *) other= ;;
        esac
        fields=$(printf '%s' ",$fields," | sed "s/,$field,/,$other,/;s/,,/,/;s/^,//;s/,\$//")
        case $field in remapped_rows.*) fields=${fields%%,remapped_rows.*} rows=1 ;; esac
    done
    section tool nvidia-smi
    printf '%s\n\n::status %s\n' "$told" "$code" | head -c 65536
    tool nvidia-processes nvidia-smi --format=csv --query-compute-apps=gpu_bus_id,pid,used_memory
    [ -z "${rows:-}" ] || tool nvidia-remapped nvidia-smi --format=csv \
        --query-remapped-rows=gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.failure
    tool nvidia-topology nvidia-smi topo -m
}

# port NAME: what tools say of an interface; of one with hardware also what it does for RoCE.
port() {
    for what in i k g c a l; do tool "ethtool-$what-$1" ethtool -$what "$1"; done
    [ -e "/sys/class/net/$1/device" ] || return
    if command -v ethtool >/dev/null 2>&1; then  # of thousands of counters those of congestion
        section tool "ethtool-S-$1"
        { bounded 3 ethtool -S "$1" 2>&1 3>&-; echo "::status $?"; } |
            grep -E '^::status|pause|discard|out_of_buffer|cnp' | head -c 65536
    fi
    if command -v dcb >/dev/null 2>&1; then
        for what in pfc ets app; do tool "dcb-$what-$1" dcb -N -j $what show dev "$1"; done
    elif [ -e "/sys/class/net/$1/device/infiniband" ]; then
        tool "mlnx_qos-$1" mlnx_qos -i "$1"
    fi
}

tools() {
    tool mpirun mpirun --version
    tool ucx_info ucx_info -v
    tool fi_info fi_info --version
    tool qdisc tc qdisc show
    tool dmidecode dmidecode -t memory
    tool chronyc chronyc -c tracking
    gpus
    ports=
    while read -r port target rest; do  # a container's interface has no device, but the route
        [ "$target" = 00000000 ] && [ ! -e "/sys/class/net/$port/device" ] && ports="$port $ports"
    done </proc/net/route 2>/dev/null
    for port in $ports /sys/class/net/*/device; do
        port=${port%/device} port=${port##*/}
        [ -e "/sys/class/net/$port" ] || continue
        port "$port"
        [ "${asked:=0}" -lt 8 ] || break
        asked=$((asked + 1))
    done
}

# access_control: the configuration space of every bridge, which only root sees whole.
access_control() {
    section bridges
    # shellcheck disable=SC2013 # their paths have no blanks
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
}

answer() {
    home=$PWD first=
    section begin 1 "$depth"
    [ "$depth" = files ] || first=$(reading)
    environment
    export LC_ALL=C LANG=C PATH="$PATH:/usr/sbin:/sbin"
    section directories
    printf 'working %s\ntemporary %s\n' "$PWD" "${TMPDIR:-/tmp}"
    section namespaces
    # shellcheck disable=SC2012 # the kernel's names, and find is not everywhere
    ls -l /proc/self/ns 2>/dev/null | sed -n 's/.* \([a-z_]*\) -> [a-z_]*:\[\([0-9]*\)\]$/\1 \2/p'
    set --
    for path in /.dockerenv /run/.containerenv /.singularity.d /dev/kvm /dev/shm /etc/machine-id \
        /run/irqbalance /run/systemd/timesync/synchronized; do
        [ -e "$path" ] && set -- "$@" "$path"
    done
    section present
    printf '%s\n' "$@"
    IFS='
'
    # shellcheck disable=SC2046 # a word a line
    set -- $(paths_of_groups) $(paths_of_devices) \
@PATHS@
    unset IFS
    read_files "$@"
    queues
    links /sys/class/net/*/device /sys/class/net/*/device/driver /sys/class/net/*/master \
        /sys/class/infiniband/*/device /sys/class/infiniband/*/device/driver \
        /sys/class/drm/card*/device /sys/bus/pci/devices/* \
        /sys/class/drm/card*/device/driver
    [ "$depth" = files ] || { tools; access_control; }
    [ -z "$program" ] || { libraries; compiler; }
    [ "$depth" != deep ] || deeper
    [ "$depth" = files ] || consumers "$first"
    section end
}

# The processors of a node repeat each other, and a counter per interrupt is nobody's business.
{ answer; } 3>&1 2>/dev/null | awk -v tag="$nonce $host" '
    /^\/proc\/cpuinfo:/ && (/:(cpu MHz|apicid|initial apicid)/ || seen[$0]++) || /^\/proc\/stat:(intr|softirq|cpu[0-9])/ { next }
    length($0) > 65536 { $0 = substr($0, 1, 65536) "::cut" }
    { gsub(/\r/, "\037"); size += length($0) + 32; line++ }
    size > 8388608 { print tag, line, "::cut"; exit }
    { print tag, line, $0 }'
