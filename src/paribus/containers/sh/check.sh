# check.sh KIND: try in earnest what a launch will do with containers of a kind: `bridge`, hosts of a
# network of their own; `host`, hosts with the machine's network; `rank`. Exit code 1: the first line of
# output names the step that failed, the others the settings that may forbid it.
fail() {
    echo "$1"
    settings='user/max_net_namespaces user/max_mnt_namespaces user/max_pid_namespaces
        user/max_uts_namespaces user/max_ipc_namespaces'
    [ -z "$user" ] || settings="$settings user/max_user_namespaces
        kernel/unprivileged_userns_clone kernel/apparmor_restrict_unprivileged_userns"
    for setting in $settings; do
        value=$(cat "/proc/sys/$setting" 2>/dev/null) && echo "$setting $value"
    done
    exit 1
}

user=
case $1 in
rank) tools=unshare ;;
host) tools='unshare mount' ;;
*) tools='unshare nsenter mount ip hostname grep mkfifo' ;;
esac
for tool in $tools; do
    command -v "$tool" >/dev/null || { echo "missing $tool"; exit 1; }
done
[ "$1" = rank ] || case $(unshare --help 2>&1) in
*--kill-child*) ;;
*) echo 'old --kill-child' && exit 1 ;;
esac

while read -r key value; do
    [ "$key" = CapEff: ] && break
done </proc/self/status
if [ "$1" != bridge ]; then
    as=root
    [ "$1" = host ] || as=current
    [ $((0x$value & 0x200000)) -ne 0 ] || user="--user --map-$as-user"
    # shellcheck disable=SC2086
    unshare $user --mount --uts --propagation private true || fail namespace
    [ "$1" = host ] || exit 0
    # shellcheck disable=SC2086
    word=$(unshare $user --mount --uts --ipc --pid --fork --kill-child --propagation private sh -c '
        mount -t proc check-proc /proc || { echo mount /proc; exit 1; }
        mount -t tmpfs check-shm /dev/shm || { echo mount /dev/shm; exit 1; }
    ') || fail "${word:-namespace}"
    exit 0
fi
[ $((0x$value & 0x201000)) -eq $((0x201000)) ] || user='--user --map-root-user'
# shellcheck disable=SC2086
unshare $user --net --uts --ipc --mount --pid --fork --kill-child --propagation private true ||
    fail namespace
# shellcheck disable=SC2086
word=$(unshare $user --net --uts --ipc --mount --pid --fork --kill-child --propagation private \
    sh -c '
        mount -t proc check-proc /proc || { echo mount /proc; exit 1; }
        mount -t sysfs check-sys /sys || { echo mount /sys; exit 1; }
        mount -t tmpfs check-shm /dev/shm || { echo mount /dev/shm; exit 1; }
        mount --bind /etc/hosts /etc/hosts || { echo mount /etc/hosts; exit 1; }
        ip link add br0 type bridge || { echo link bridge; exit 1; }
        ip link add v0 type veth peer name v1 || { echo link veth; exit 1; }
    ') || fail "$word"
