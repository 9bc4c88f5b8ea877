# image.sh ENGINE IMAGE PLACES PREFIX BOUND KEPT OWN MORE PROGRAM...: run PROGRAM in a container that
# ENGINE makes of IMAGE ("": of the machine's own files). OWN and MORE are options of the engine, quoted
# for a shell. PLACES are directories to bind in, one a line, and PREFIX is that of the machine's MPI,
# which is not used unless BOUND is "yes"; KEPT are the variables that the study sets.
# shellcheck disable=SC2086
engine=$1 image=$2 places=$3 prefix=$4 bound=$5 kept=" $6 " own=$7 more=$8
shift 8
newline='
'
# What an image has not: places outside the system's own that the program's words name, and this one.
for word in "$PWD" "$@"; do
    case $word in
    /usr | /usr/* | /bin/* | /sbin/* | /lib* | /etc/* | /dev/* | /proc/* | /sys/* | *"$newline"*) continue ;;
    /*/*) [ -d "$word" ] || word=${word%/*} ;;
    *) continue ;;
    esac
    [ "$bound" = yes ] || case ${prefix:+$word/} in "$prefix"/*) continue ;; esac
    [ -d "$word" ] && places=$places$newline$word
done
# The machine's MPI is found by these, which lead an image's astray.
others='LD_LIBRARY_PATH OPAL_PREFIX PRTE_PREFIX PMIX_PREFIX I_MPI_ROOT'
for name in $others; do
    [ "$bound" = yes ] || case $kept in *" $name "*) ;; *) unset "$name" ;; esac
done

# Ranks in user namespaces of their own may not copy straight from each other's memory (see rank.sh).
if [ "$engine" = charliecloud ] || { [ "$engine" != docker ] && [ "$(id -u)" -ne 0 ]; }; then
    export OMPI_MCA_smsc="${OMPI_MCA_smsc:-^cma}"
    export OMPI_MCA_btl_vader_single_copy_mechanism="${OMPI_MCA_btl_vader_single_copy_mechanism:-none}"
    export MPIR_CVAR_CH4_CMA_ENABLE="${MPIR_CVAR_CH4_CMA_ENABLE:-0}"
    export I_MPI_SHM_CMA="${I_MPI_SHM_CMA:-0}"
    export UCX_POSIX_USE_PROC_LINK="${UCX_POSIX_USE_PROC_LINK:-n}"
fi

[ "$engine" != charliecloud ] || set -- -- "$@"
if [ -n "$image" ]; then set -- "$image" "$@"; else set -- --rootfs /run/paribus/rootfs "$@"; fi
eval "set -- $more \"\$@\""
IFS=$newline
for place in $(printf '%s\n' "$places" | sort -u); do
    case $engine in
    docker | podman) set -- --volume "$place:$place" "$@" ;;
    charliecloud)
        case $place/ in /tmp/*) continue ;; esac # shared, unless by an option
        if [ -d "$image" ] && [ ! -d "$image$place" ]; then
            echo "paribus: $image has no directory $place: mkdir -p '$image$place'" >&2
            exit 125
        fi
        set -- --bind "$place:$place" "$@"
        ;;
    *) set -- --bind "$place:$place" "$@" ;;
    esac
done
unset IFS
case $engine in
docker | podman)
    # A container starts with the image's environment: hand on the launcher's, by name.
    for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort -u); do
        case $name in PATH | HOME | HOSTNAME | LOGNAME | USER | PWD | OLDPWD | SHLVL | _ | CONTAINERS_* | DOCKER_*)
            case $kept in *" $name "*) ;; *) continue ;; esac ;;
        esac
        set -- --env "$name" "$@"
    done
    # Its limits are those of the service, not of who asks. Podman lowers that of processes itself.
    while read -r _ second third fourth fifth _; do
        case $second-$third in
        open-files) set -- --ulimit "nofile=$fourth:$fifth" "$@" ;;
        locked-memory) set -- --ulimit "memlock=$fourth:$fifth" "$@" ;;
        stack-size) set -- --ulimit "stack=$fourth:$fifth" "$@" ;;
        processes-*)
            [ "$third" -ge 0 ] && [ "$third" -le 8192 ] || [ "$engine" = docker ] || third=8192 fourth=8192
            set -- --ulimit "nproc=$third:$fourth" "$@"
            ;;
        esac
    done <<END
$(sed 's/unlimited/-1/g' /proc/self/limits)
END
    if [ "$engine" = podman ] && [ "$(id -u)" -ne 0 ]; then
        set -- --userns keep-id "$@"
    else
        set -- --user "$(id -u):$(id -g)" "$@"
    fi
    set -- --workdir "$PWD" "$@"
    ;;
charliecloud)
    : "${USER:=$(id -un)}"
    export USER
    set -- --cd "$PWD" "$@"
    # What TMPDIR names would be mounted in the place of /tmp, and hide what lies there.
    [ -z "${TMPDIR-}" ] || set -- --set-env="TMPDIR=$TMPDIR" "$@"
    unset TMPDIR
    engine=ch-run
    ;;
*) # It hands on the environment, but for this one.
    [ -z "${LD_LIBRARY_PATH-}" ] ||
        export APPTAINERENV_LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SINGULARITYENV_LD_LIBRARY_PATH="$LD_LIBRARY_PATH"
    set -- --pwd "$PWD" "$@"
    ;;
esac
[ "$engine" = docker ] || eval "exec $engine $own \"\$@\""

# Docker's client may end without its container.
name=paribus-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
trap 'docker kill "$name" >/dev/null 2>&1; exit 143' HUP INT TERM
eval "docker $own --name $name \"\$@\"" &
wait $!
