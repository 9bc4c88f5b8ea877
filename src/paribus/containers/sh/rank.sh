# rank.sh PROGRAM...: become PROGRAM in mount and UTS namespaces of its own; the pid stays.
while read -r key value; do
    [ "$key" = CapEff: ] && break
done </proc/self/status
user=
if [ $((0x$value & 0x200000)) -eq 0 ]; then
    # The uid stays, for Open MPI's launcher turns away ranks with another.
    user='--user --map-current-user'
    # Ranks in user namespaces of their own may not copy straight from each other's memory, which
    # libraries learn by failing: off, unless asked for.
    export OMPI_MCA_smsc="${OMPI_MCA_smsc:-^cma}"
    export OMPI_MCA_btl_vader_single_copy_mechanism="${OMPI_MCA_btl_vader_single_copy_mechanism:-none}"
    export MPIR_CVAR_CH4_CMA_ENABLE="${MPIR_CVAR_CH4_CMA_ENABLE:-0}"
    export I_MPI_SHM_CMA="${I_MPI_SHM_CMA:-0}"
    export UCX_POSIX_USE_PROC_LINK="${UCX_POSIX_USE_PROC_LINK:-n}"
fi
# shellcheck disable=SC2086
exec unshare $user --mount --uts --propagation private -- "$@"
