# How the podman of a fabric is called: `podman --root ... $storage --runtime $runtime`.
# shellcheck shell=sh disable=SC2154,SC2034
work=/run/paribus
runtime=runc
command -v crun >/dev/null && runtime=crun
storage='--storage-driver vfs'
[ -r "$here/image" ] && read -r stores <"$work/stores" &&
    storage="--storage-driver overlay --storage-opt additionalimagestore=$stores"
# Plugins look for iptables, and stop at a directory of PATH that they may not read.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
HOME=$work/home TMPDIR=$work/tmp CONTAINERS_CONF=$here/containers.conf
export PATH HOME TMPDIR CONTAINERS_CONF
