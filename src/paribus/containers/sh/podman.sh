# Part of fabric.sh: prepares what podman needs, so that all its traces die with the fabric. The
# containers themselves are started by the launch agent.
. "$here/podman_ground.sh"
# Network plugins keep their books in /var/lib/cni.
mount -t overlay -o "lowerdir=/var/lib,upperdir=$work/upper/lib,workdir=$work/work/lib" books /var/lib &&
    mkdir -p /var/lib/cni || give_up 'no overlay on /var/lib for the books of network plugins'
cp "$here/paribus.conflist" "$here/paribus.json" "$work/net"
ip -batch "$here/bridge.ip" || give_up 'the bridge could not be made'
printf '%s' "$settings" >"$here/settings"
