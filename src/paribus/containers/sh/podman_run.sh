# podman_run OPTIONS... ROOT COMMAND...: become a podman that carries out COMMAND in a container.
# $here is the scratch directory.
podman_run() {
    work=/run/paribus
    runtime=runc
    command -v crun >/dev/null && runtime=crun
    # Without CAP_SYS_RESOURCE podman's own limits, above the hard ones, are refused.
    while read -r first second third fourth _; do
        case $first-$second in
        Max-processes) processes=$third ;;
        Max-open) files=$fourth ;;
        esac
    done </proc/self/limits
    case $processes in
    unlimited) processes=8192 ;;
    *) [ "$processes" -le 8192 ] || processes=8192 ;;
    esac
    [ "$files" -le 16384 ] || files=16384
    # Plugins look for iptables, and stop at a directory of PATH that they may not read.
    path=$PATH home=$HOME
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    HOME=$work/home TMPDIR=$work/tmp CONTAINERS_CONF=$here/containers.conf
    export PATH HOME TMPDIR CONTAINERS_CONF
    exec podman --root "$work/store" --runroot "$work/run" --storage-driver vfs \
        --runtime "$runtime" run --rm --env-host --env PATH="$path" --env HOME="$home" \
        --log-driver none --security-opt label=disable \
        --ulimit "nofile=$files:$files" --ulimit "nproc=$processes:$processes" \
        --cgroups disabled --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup \
        -v "$work/pts:/dev/pts" "$@"
}
