"""The variables that make MPI and what is below it take one RDMA port."""

from __future__ import annotations

from paribus.core import Adapter


def adapter_env(adapter: Adapter) -> dict[str, str]:
    """Return the variables of UCX, of Open MPI's own verbs layer, and of NCCL for `adapter`.

    UCX: UCX_NET_DEVICES leaves TCP out, and shared memory in. NCCL_IB_HCA: `=` is an exact name.
    """
    port = str(adapter)
    env = {
        "UCX_NET_DEVICES": port,
        "OMPI_MCA_btl_openib_if_include": port,
        "NCCL_IB_HCA": f"={port}",
    }
    if adapter.gid_index is not None:
        names = ("UCX_IB_GID_INDEX", "OMPI_MCA_btl_openib_gid_index", "NCCL_IB_GID_INDEX")
        env |= dict.fromkeys(names, str(adapter.gid_index))
    return env
