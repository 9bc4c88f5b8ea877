# What `paribus cluster` asks of every node: lines KEY VALUE, ended by the line "$mark". What cannot
# be found out is left out. Set before: mark, prefix (where MPI is installed, or nothing), places (where
# it is looked for after the PATH).
# shellcheck disable=SC2154,SC3045
say() { [ -z "$2" ] || printf '%s %s\n' "$1" "$2"; }
# The first line of a file.
file() {
    line=
    if [ -r "$2" ]; then { IFS= read -r line <"$2"; } 2>/dev/null || :; fi
    say "$1" "$line"
}
found() { command -v "$1" 2>/dev/null; }
# A command on a dead file system would never end.
limited=
if found timeout >/dev/null; then limited='timeout 5'; fi

for tool in cat chmod cp cut head id kill ls mkdir mkfifo mktemp mv od rm sed sleep sort tail tr \
    uname base64 stat taskset ssh; do
    found "$tool" >/dev/null || say missing "$tool"
done
say user "$(id -un 2>/dev/null || id -u)"
file hostname /proc/sys/kernel/hostname
file boot /proc/sys/kernel/random/boot_id
file machine /etc/machine-id
say net "$(readlink /proc/self/ns/net)"
say arch "$(uname -m)"
file kernel /proc/sys/kernel/osrelease
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)
if [ -z "$libc" ] && found ldd >/dev/null; then libc=$(ldd --version 2>&1 | head -n 1); fi
say libc "$libc"
[ ! -r /etc/os-release ] || sed -n 's/^PRETTY_NAME="*\([^"]*\)"*/os \1/p' /etc/os-release
say cpus "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
file siblings /sys/devices/system/cpu/cpu0/topology/thread_siblings_list
sed -n '/^model name/{s/[^:]*: */model /p;q;}' /proc/cpuinfo
sed -n 's/^MemTotal: *\([0-9]*\) kB/memory \1/p;/MemTotal/q' /proc/meminfo
say connection "$SSH_CONNECTION"

say limit.memlock "$(ulimit -l 2>/dev/null)"
say limit.nofile "$(ulimit -n 2>/dev/null)"
say limit.stack "$(ulimit -s 2>/dev/null)"

if found ip >/dev/null; then
    ip -o -4 addr show | sed 's/^[0-9]*: /address /'
else
    sed 's/^/route /' /proc/net/route
    head -c 65536 /proc/net/fib_trie | sed 's/^/trie /'
fi
for one in /sys/class/net/*; do
    [ -r "$one/mtu" ] || continue
    speed='' state='' mtu=''
    { read -r mtu <"$one/mtu"; read -r state <"$one/operstate"; read -r speed <"$one/speed"; } 2>/dev/null
    say interface "${one##*/} ${mtu:-0} ${state:-unknown} ${speed:--1}"
done
for one in /sys/class/infiniband/*/ports/*; do
    [ -r "$one/state" ] || continue
    state='' rate='' layer=''
    { read -r state <"$one/state"; read -r rate <"$one/rate"; read -r layer <"$one/link_layer"; } 2>/dev/null
    device=${one%/ports/*}
    say rdma "${device##*/}/${one##*/}|$state|$rate|$layer"
done
# The shell's own `read` takes a byte at a time, which numbers under /proc/sys do not permit.
( cd /proc/sys/net && head -n 1 core/rmem_max core/wmem_max core/netdev_max_backlog core/somaxconn \
    core/default_qdisc ipv4/tcp_rmem ipv4/tcp_wmem ipv4/tcp_congestion_control \
    ipv4/tcp_mtu_probing ipv4/tcp_timestamps ipv4/tcp_sack ipv4/tcp_slow_start_after_idle \
    ipv4/ip_local_port_range 2>/dev/null ) |
    sed -n '/^==> /{s/^==> /sysctl.net\//;s/ <==$//;s/\//./g;N;s/\n/ /p;}'

# Where the user says that MPI is, it is nowhere else.
mpi() {
    if [ -z "$prefix" ]; then
        (PATH=$PATH${places:+:$places} && found "$1")
    else
        [ -x "$prefix/bin/$1" ] && echo "$prefix/bin/$1"
    fi
}
say mpi.prefix "$prefix"
say mpi.places "$places"
launcher=$(mpi mpirun || mpi mpiexec)
if [ -n "$launcher" ]; then
    say mpi.launcher "$launcher"
    $limited "$launcher" --version </dev/null 2>&1 | head -n 5 | sed 's/^/mpi.said /'
fi
wrapper=$(mpi mpicxx)
if [ -n "$wrapper" ]; then
    say mpi.compiler "$wrapper"
    folders=$($limited "$wrapper" --showme:libdirs </dev/null 2>/dev/null ||
        $limited "$wrapper" -show </dev/null 2>/dev/null | tr ' ' '\n' | sed -n 's/^-L//p')
fi
for folder in $folders ${launcher:+"${launcher%/*}/../lib" "${launcher%/*}/../lib64"} \
    /usr/lib/*-linux-gnu /usr/lib64; do
    for one in "$folder"/libmpi.so "$folder"/libmpi.so.[0-9]* "$folder"/libmpich.so*; do
        [ -r "$one" ] || continue
        library=$(readlink -f "$one")
        # The note that holds the build-id: sizes 4 and 20, type 3, "GNU" (elf(5)).
        build=$(od -An -v -tx1 -N8192 "$library" | tr -d ' \n' |
            sed -n 's/.*040000001400000003000000474e5500\(.\{40\}\).*/\1/p')
        say mpi.library "$library"
        say mpi.build "${build:-$(cksum <"$library")}"
        break 2
    done
done
compiler=$(found c++ || found g++ || found clang++)
if [ -n "$compiler" ]; then
    say compiler "$compiler"
    say compiler.said "$($limited "$compiler" --version </dev/null 2>/dev/null | head -n 1)"
fi

for one in "tmp ${TMPDIR:-/tmp}" "home $HOME" "shm /dev/shm"; do
    folder=${one#* } name=${one%% *}
    made=$folder/.paribus-$mark
    # shellcheck disable=SC2016
    said=$($limited sh -c '
        umask 077
        { printf "#!/bin/sh\nexit 0\n"; head -c 65536 /dev/zero | tr "\0" "\n"; } 2>&- | cat >"$1" || exit 1
        [ "$2" = shm ] || { chmod 700 "$1" && "$1" || echo "nothing can be executed there"; }
    ' sh "$made" "$name" 2>&1 </dev/null)
    case $? in
    0) ;;
    124) said='it does not answer' ;;
    *) said=${said:-cannot be written} ;;
    esac
    [ "$said" = 'it does not answer' ] || rm -f "$made"
    say "$name" "$folder"
    # Outside of a file system the shell names itself and the line: the reason comes last.
    said=$(printf '%s\n' "$said" | tail -n 1)
    say "$name.refused" "${said##*: }"
    say "$name.space" "$($limited stat -f -c '%a %S %b %d %c %T' "$folder" 2>/dev/null)"
done
printf '%s\n' "$mark"
