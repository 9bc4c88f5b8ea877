# podman_private.sh COMMAND...: become COMMAND, whose podman has its state, and no cgroups, in a private
# /run. So nothing is left of it when a launch is killed, and it needs no cgroups that it may change.
work=/run/paribus
give_up() {
    echo "paribus: $1" >&2
    exit 125
}
mount -t tmpfs -o mode=755 run /run || give_up 'no private /run for podman'
mkdir "$work" "$work/home" "$work/tmp" "$work/cgroup" "$work/pts" "$work/upper" "$work/work" \
    "$work/store" "$work/rootfs"
find_stores
# runc insists on finding the hierarchies of /proc/self/cgroup (see podman.sh).
while IFS=: read -r _ names _; do
    IFS=,
    for name in ${names#name=}; do
        mkdir -p "$work/cgroup/$name"
    done
done </proc/self/cgroup
unset IFS
{ mount --bind "$work/cgroup" /sys/fs/cgroup && mount -o remount,bind,ro /sys/fs/cgroup; } ||
    give_up 'the cgroups could not be hidden from podman'
mount -t devpts -o newinstance,ptmxmode=0666 pts "$work/pts" || give_up 'no private /dev/pts'
for path in /*; do
    target=$work/rootfs$path
    if [ -L "$path" ]; then
        cp -P "$path" "$target"
    elif [ -d "$path" ]; then
        mkdir "$target"
        case $path in
        /proc | /sys | /dev | /run) continue ;;
        /etc)
            mount -t overlay -o "lowerdir=/etc,upperdir=$work/upper,workdir=$work/work" etc "$target" \
                2>/dev/null && continue
            ;;
        esac
        mount --rbind "$path" "$target" || give_up "the container's root could not be made"
    fi
done

cat >"$work/runtime.sh" <<'END'
#!/bin/sh
# The runtime without cgroups. Drops --cgroup-manager, and the cgroup of the container's description.
count=$# previous=
while [ "$count" -gt 0 ]; do
    case $1 in
    --cgroup-manager) shift && count=$((count - 1)) ;;
    --cgroup-manager=*) ;;
    *)
        [ "$previous" != --bundle ] || sed -i 's/"cgroupsPath":"[^"]*",*//' "$1/config.json"
        set -- "$@" "$1"
        ;;
    esac
    previous=$1
    shift
    count=$((count - 1))
done
command -v runc >/dev/null && exec runc --rootless=true "$@"
exec crun --cgroup-manager=disabled "$@"
END
chmod 755 "$work/runtime.sh"
cat >"$work/containers.conf" <<END
[containers]
cgroups = "no-conmon"
cgroupns = "host"
pids_limit = 0
log_driver = "none"
volumes = ["/sys/fs/cgroup:/sys/fs/cgroup", "$work/pts:/dev/pts"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
runtime = "runc"
[engine.runtimes]
runc = ["$work/runtime.sh"]
END
cat >"$work/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$work/store"
runroot = "$work/run"
[storage.options]
END
[ -z "$stores" ] || echo "additionalimagestores = [\"$stores\"]" >>"$work/storage.conf"
export CONTAINERS_CONF="$work/containers.conf" CONTAINERS_STORAGE_CONF="$work/storage.conf"
exec "$@"
