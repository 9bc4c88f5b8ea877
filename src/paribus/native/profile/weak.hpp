// What the profiler takes of MPI, which is weak: the dynamic linker loads it into the launcher and
// into shells too, and there nothing of MPI may be needed.
#pragma once

#include <mpi.h>

#ifdef OPEN_MPI
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_request_null
#pragma weak ompi_mpi_byte
#else
extern "C" {
extern char ompi_mpi_comm_world;
}
#pragma weak ompi_mpi_comm_world
#endif
#define OF_MPI(name) extern "C" decltype(name) name __attribute__((weak));
OF_MPI(PMPI_Comm_rank)
OF_MPI(PMPI_Comm_size)
OF_MPI(PMPI_Comm_remote_size)
OF_MPI(PMPI_Comm_test_inter)
OF_MPI(PMPI_Comm_group)
OF_MPI(PMPI_Group_translate_ranks)
OF_MPI(PMPI_Group_free)
OF_MPI(PMPI_Get_library_version)
OF_MPI(PMPI_Type_size)
OF_MPI(PMPI_Type_get_envelope)
#ifndef MPI_Comm_f2c
OF_MPI(MPI_Comm_f2c)
#endif
#ifndef MPI_Type_f2c
OF_MPI(MPI_Type_f2c)
#endif
#ifndef MPI_Request_c2f
OF_MPI(MPI_Request_c2f)
#endif
