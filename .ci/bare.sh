#!/bin/sh
# The tests marked `installed`, but for slow ones, on a machine that has a compiler and Python, but no MPI and no optional program:
# as root in this clone, then as an ordinary user in a clone of it. Programs are hidden in this mount namespace only:
#     unshare --mount --propagation private .ci/bare.sh
set -eu
cd "$(dirname "$0")/.."

for pattern in 'mpi*' 'orte*' 'ompi*' 'opal*' 'prte*' 'hydra*' 'pmi*' hpcc 'lmp*' pw.x 'gfortran*' fio iperf3 'ucx_*' 'ib_*' \
    qperf sockperf busybox podman runc 'ch-run*' chromium ssh 'ssh-*' sshd srun 'slurm*' munged openssl ipmi_sim ipmitool \
    'iptables*' 'xtables*'; do
    for program in /usr/bin/$pattern /usr/sbin/$pattern /usr/local/bin/$pattern; do
        [ ! -x "$program" ] || mount --bind /dev/null "$(readlink -f "$program")"
    done
done
[ ! -d /opt/paribus-tests ] || mount -t tmpfs -o ro none /opt/paribus-tests

./dev test -m "installed and not slow"

there=$(mktemp -d /var/tmp/paribus-bare.XXXXXX)
trap 'rm -rf "$there"' EXIT
id=4242
for file in passwd group; do cp /etc/$file "$there/$file"; done
echo "builder:x:$id:$id::$there:/bin/sh" >>"$there/passwd"
echo "builder:x:$id:" >>"$there/group"
for file in passwd group; do mount --bind "$there/$file" /etc/$file; done
git clone -q . "$there/paribus"
chown -R $id:$id "$there/paribus"
chmod 755 "$there"
# What pip fetched for root is not fetched again; it is installed again, as a user would.
mkdir -p "$there/home/.cache"
fetched=$(.venv/bin/python -m pip cache dir 2>/dev/null || echo none)
[ ! -d "$fetched" ] || cp -R "$fetched" "$there/home/.cache/pip"
chown -R $id:$id "$there/home"
cd "$there/paribus"
setpriv --reuid $id --regid $id --clear-groups env HOME="$there/home" USER=builder LOGNAME=builder ./dev test -m "installed and not slow"
