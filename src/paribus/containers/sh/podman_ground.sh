# Prepares in /run, a file system that dies with the namespaces, what podman needs. Uses give_up, sets
# $work: a short path, for podman refuses a --runroot of more than 50 characters.
work=/run/paribus
mkdir "$work" "$work/home" "$work/tmp" "$work/cgroup" "$work/net" "$work/pts" "$work/upper" \
    "$work/upper/etc" "$work/upper/lib" "$work/work" "$work/work/etc" "$work/work/lib" "$work/rootfs" "$work/mqueue"

# No cgroups: they would outlive a launch that is killed. runc insists on finding the hierarchies of
# /proc/self/cgroup, and takes read-only ones for "not permitted", which it tolerates.
while IFS=: read -r _ names _; do
    IFS=,
    for name in ${names#name=}; do
        mkdir -p "$work/cgroup/$name"
    done
done </proc/self/cgroup
unset IFS
mount --bind "$work/cgroup" /sys/fs/cgroup && mount -o remount,bind,ro /sys/fs/cgroup ||
    give_up 'the cgroups could not be hidden from podman'
# A terminal layer without the group tty, which an ordinary user's namespace does not have.
mount -t devpts -o newinstance,ptmxmode=0666 pts "$work/pts" || give_up 'no private /dev/pts'

# The machine's own files, as the root of containers that need no image. Files that podman adds to
# /etc land in an overlay, those in /run and the mount points in $work.
for path in /*; do
    target=$work/rootfs$path
    if [ -L "$path" ]; then
        cp -P "$path" "$target"
        continue
    fi
    [ -d "$path" ] && mkdir "$target" || continue
    case $path in
    /proc | /sys | /dev | /run) continue ;;
    /etc)
        mount -t overlay -o "lowerdir=/etc,upperdir=$work/upper/etc,workdir=$work/work/etc" etc \
            "$target" 2>/dev/null && continue
        ;;
    esac
    mount --rbind "$path" "$target" || give_up "the containers' root could not be made"
done
