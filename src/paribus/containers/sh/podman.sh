# Part of fabric.sh: the containers, by podman, all of whose traces die with the fabric.
# shellcheck shell=sh disable=SC2154,SC2034
# A short path, for podman refuses a --runroot of more than 50 characters.
work=/run/paribus
mkdir "$work" "$work/home" "$work/tmp" "$work/cgroup" "$work/net" "$work/pts" "$work/upper" \
    "$work/upper/etc" "$work/upper/lib" "$work/work" "$work/work/etc" "$work/work/lib" "$work/rootfs"

# No cgroups: they would outlive a launch that is killed. runc insists on finding the hierarchies of
# /proc/self/cgroup, and takes read-only ones for "not permitted", which it tolerates.
while IFS=: read -r _ names _; do
    IFS=,
    for name in ${names#name=}; do
        mkdir -p "$work/cgroup/$name"
    done
done </proc/self/cgroup
unset IFS
{ mount --bind "$work/cgroup" /sys/fs/cgroup && mount -o remount,bind,ro /sys/fs/cgroup; } ||
    give_up 'the cgroups could not be hidden from podman'
# A terminal layer without the group tty, which an ordinary user's namespace does not have.
mount -t devpts -o newinstance,ptmxmode=0666 pts "$work/pts" || give_up 'no private /dev/pts'

if [ -r "$here/image" ]; then
    # The images of whoever asks, read-only; and the places outside the system's own that the
    # launcher's words name, for an image has neither this MPI nor this program.
    find_stores
    [ -n "$stores" ] || give_up "podman has no images of the storage driver overlay in $store"
    echo "$stores" >"$work/stores"
    prefix=${1%/*}
    for word in "${prefix%/*}" "$@"; do
        case $word in
        /usr | /usr/* | /bin/* | /sbin/* | /lib* | /etc/* | /dev/* | /proc/* | /sys/*) continue ;;
        /*/*) [ -d "$word" ] || word=${word%/*} ;;
        *) continue ;;
        esac
        [ -d "$word" ] && echo "$word"
    done | sort -u | grep -vxF "$here" >"$work/binds"
else
    # The machine's own files, as the root of containers that need no image. Files that podman adds to
    # /etc land in an overlay, those in /run and the mount points in $work.
    for path in /*; do
        target=$work/rootfs$path
        if [ -L "$path" ]; then
            cp -P "$path" "$target"
            continue
        fi
        { [ -d "$path" ] && mkdir "$target"; } || continue
        case $path in
        /proc | /sys | /dev | /run) continue ;;
        /etc)
            mount -t overlay -o "lowerdir=/etc,upperdir=$work/upper/etc,workdir=$work/work/etc" etc \
                "$target" 2>/dev/null && continue
            ;;
        esac
        mount --rbind "$path" "$target" || give_up "the containers' root could not be made"
    done
fi
# Network plugins keep their books in /var/lib/cni, which is root's where root used podman before.
{
    mount -t overlay -o "lowerdir=/var/lib,upperdir=$work/upper/lib,workdir=$work/work/lib" \
        books /var/lib && mkdir -p /var/lib/cni && mount -t tmpfs books /var/lib/cni
} || give_up 'no overlay on /var/lib for the books of network plugins'
cp "$here/paribus.conflist" "$here/paribus.json" "$work/net"
ip -batch "$here/bridge.ip" || give_up 'the bridge could not be made'

started=
while read -r address name; do
    case $name in c*) ;; *) continue ;; esac
    /bin/sh "$here/host.sh" "$here" "$name" "$address" "$settings" &
    started="$started $!"
done <"$here/hosts"
for pid in $started; do
    wait "$pid" || give_up 'podman could not start a container'
done
