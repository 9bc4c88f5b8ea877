// The calls that are counted: name, Fortran's name, arguments, what kind of time, what follows,
// and what the trace takes in.
// A receive counts by the size of the buffer that it posts. Of requests the class is remembered.
#define DATA const void*, int, MPI_Datatype
#define BUFFER void*, int, MPI_Datatype
#define NOTHING (void)0

CALL(Send, send, 6, (DATA, int, int, MPI_Comm), message(a2, a3), NOTHING, to_peer(call, a4, a5, a6))
CALL(Bsend, bsend, 6, (DATA, int, int, MPI_Comm), message(a2, a3), NOTHING,
     to_peer(call, a4, a5, a6))
CALL(Ssend, ssend, 6, (DATA, int, int, MPI_Comm), message(a2, a3), NOTHING,
     to_peer(call, a4, a5, a6))
CALL(Rsend, rsend, 6, (DATA, int, int, MPI_Comm), message(a2, a3), NOTHING,
     to_peer(call, a4, a5, a6))
CALL(Recv, recv, 7, (BUFFER, int, int, MPI_Comm, MPI_Status*), message(a2, a3), NOTHING,
     to_peer(call, a4, a5, a6))
CALL(Mrecv, mrecv, 5, (BUFFER, MPI_Message*, MPI_Status*), message(a2, a3), NOTHING, put(call, {}))
CALL(Sendrecv, sendrecv, 12, (DATA, int, int, BUFFER, int, int, MPI_Comm, MPI_Status*),
     message(a2, a3), NOTHING, exchange(call, a4, a5, a9, a10, a11))
CALL(Sendrecv_replace, sendrecv_replace, 9, (BUFFER, int, int, int, int, MPI_Comm, MPI_Status*),
     message(a2, a3), NOTHING, exchange(call, a4, a5, a6, a7, a8))
CALL(Isend, isend, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3), remember(kind, a7),
     to_peer(call, a4, a5, a6))
CALL(Ibsend, ibsend, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Issend, issend, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Irsend, irsend, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Irecv, irecv, 7, (BUFFER, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Imrecv, imrecv, 5, (BUFFER, MPI_Message*, MPI_Request*), message(a2, a3), remember(kind, a5),
     put(call, {}))
CALL(Send_init, send_init, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Ssend_init, ssend_init, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Bsend_init, bsend_init, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Rsend_init, rsend_init, 7, (DATA, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Recv_init, recv_init, 7, (BUFFER, int, int, MPI_Comm, MPI_Request*), message(a2, a3),
     remember(kind, a7), to_peer(call, a4, a5, a6))
CALL(Start, start, 1, (MPI_Request*), waits(1, a1), NOTHING, all_over(call))
CALL(Startall, startall, 2, (int, MPI_Request*), waits(a1, a2), NOTHING, all_over(call))

CALL(Wait, wait, 2, (MPI_Request*, MPI_Status*), waits(1, a1), NOTHING, all_over(call))
CALL(Waitall, waitall, 3, (int, MPI_Request*, MPI_Status*), waits(a1, a2), NOTHING, all_over(call))
CALL(Waitany, waitany, 4, (int, MPI_Request*, int*, MPI_Status*), waits(a1, a2), NOTHING,
     one_over(call, a3))
CALL(Waitsome, waitsome, 5, (int, MPI_Request*, int*, int*, MPI_Status*), waits(a1, a2), NOTHING,
     some_over(call, a3, a4))
CALL(Test, test, 3, (MPI_Request*, int*, MPI_Status*), waits(1, a1), NOTHING, all_over(call, a2))
CALL(Testall, testall, 4, (int, MPI_Request*, int*, MPI_Status*), waits(a1, a2), NOTHING,
     all_over(call, a3))
CALL(Testany, testany, 5, (int, MPI_Request*, int*, int*, MPI_Status*), waits(a1, a2), NOTHING,
     one_over(call, a3, a4))
CALL(Testsome, testsome, 5, (int, MPI_Request*, int*, int*, MPI_Status*), waits(a1, a2), NOTHING,
     some_over(call, a3, a4))
CALL(Probe, probe, 4, (int, int, MPI_Comm, MPI_Status*), (Kind{waiting, 0}), NOTHING, poll(call))
CALL(Iprobe, iprobe, 5, (int, int, MPI_Comm, int*, MPI_Status*), (Kind{waiting, 0}), NOTHING,
     poll(call))
CALL(Mprobe, mprobe, 5, (int, int, MPI_Comm, MPI_Message*, MPI_Status*), (Kind{waiting, 0}),
     NOTHING, put(call, {}))
CALL(Improbe, improbe, 6, (int, int, MPI_Comm, int*, MPI_Message*, MPI_Status*), (Kind{waiting, 0}),
     NOTHING, put(call, {}))

// Only arguments that are significant on the rank, and not with MPI_IN_PLACE ignored, are read.
CALL(Barrier, barrier, 1, (MPI_Comm), (Kind{collectives, 0}), NOTHING, together(call, a1))
CALL(Bcast, bcast, 5, (BUFFER, int, MPI_Comm), collective(a2, a3), NOTHING, together(call, a4, a5))
CALL(Reduce, reduce, 7, (const void*, BUFFER, MPI_Op, int, MPI_Comm), collective(a3, a4), NOTHING,
     together(call, a6, a7))
CALL(Allreduce, allreduce, 6, (const void*, BUFFER, MPI_Op, MPI_Comm), collective(a3, a4), NOTHING,
     together(call, a6))
CALL(Scan, scan, 6, (const void*, BUFFER, MPI_Op, MPI_Comm), collective(a3, a4), NOTHING,
     together(call, a6))
CALL(Exscan, exscan, 6, (const void*, BUFFER, MPI_Op, MPI_Comm), collective(a3, a4), NOTHING,
     together(call, a6))
CALL(Reduce_scatter_block, reduce_scatter_block, 6, (const void*, BUFFER, MPI_Op, MPI_Comm),
     collective(a3, a4), NOTHING, together(call, a6))
CALL(Reduce_scatter, reduce_scatter, 6,
     (const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm), collective_v(a3, a4, a6),
     NOTHING, together(call, a6))
CALL(Gather, gather, 8, (DATA, BUFFER, int, MPI_Comm),
     (is_root(a7, a8) ? collective(a5, a6) : collective(a2, a3)), NOTHING, together(call, a7, a8))
CALL(Gatherv, gatherv, 9, (DATA, void*, const int*, const int*, MPI_Datatype, int, MPI_Comm),
     (is_root(a8, a9) ? collective_v(a5, a7, a9) : collective(a2, a3)), NOTHING,
     uneven(call, a5, a7, a8, a9, sized(a2, a3)))
CALL(Scatter, scatter, 8, (DATA, BUFFER, int, MPI_Comm),
     (is_root(a7, a8) ? collective(a2, a3) : collective(a5, a6)), NOTHING, together(call, a7, a8))
CALL(Scatterv, scatterv, 9,
     (const void*, const int*, const int*, MPI_Datatype, BUFFER, int, MPI_Comm),
     (is_root(a8, a9) ? collective_v(a2, a4, a9) : collective(a6, a7)), NOTHING,
     uneven(call, a2, a4, a8, a9, sized(a6, a7)))
CALL(Allgather, allgather, 7, (DATA, BUFFER, MPI_Comm), collective(a5, a6), NOTHING,
     together(call, a7))
CALL(Allgatherv, allgatherv, 8, (DATA, void*, const int*, const int*, MPI_Datatype, MPI_Comm),
     collective_v(a5, a7, a8), NOTHING, uneven(call, a5, a7, a8))
CALL(Alltoall, alltoall, 7, (DATA, BUFFER, MPI_Comm), collective(a5, a6), NOTHING,
     together(call, a7))
CALL(Alltoallv, alltoallv, 9,
     (const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
      MPI_Datatype, MPI_Comm),
     collective_v(a6, a8, a9), NOTHING, uneven_to_all(call, a6, a8, a9))
CALL(Neighbor_allgather, neighbor_allgather, 7, (DATA, BUFFER, MPI_Comm), collective(a5, a6),
     NOTHING, put(call, {}))
CALL(Neighbor_alltoall, neighbor_alltoall, 7, (DATA, BUFFER, MPI_Comm), collective(a5, a6), NOTHING,
     put(call, {}))
CALL(Ibarrier, ibarrier, 2, (MPI_Comm, MPI_Request*), (Kind{collectives, 0}), remember(kind, a2),
     together(call, a1))
CALL(Ibcast, ibcast, 6, (BUFFER, int, MPI_Comm, MPI_Request*), collective(a2, a3),
     remember(kind, a6), together(call, a4, a5))
CALL(Ireduce, ireduce, 8, (const void*, BUFFER, MPI_Op, int, MPI_Comm, MPI_Request*),
     collective(a3, a4), remember(kind, a8), together(call, a6, a7))
CALL(Iallreduce, iallreduce, 7, (const void*, BUFFER, MPI_Op, MPI_Comm, MPI_Request*),
     collective(a3, a4), remember(kind, a7), together(call, a6))
CALL(Ireduce_scatter_block, ireduce_scatter_block, 7,
     (const void*, BUFFER, MPI_Op, MPI_Comm, MPI_Request*), collective(a3, a4), remember(kind, a7),
     together(call, a6))
CALL(Igather, igather, 9, (DATA, BUFFER, int, MPI_Comm, MPI_Request*),
     (is_root(a7, a8) ? collective(a5, a6) : collective(a2, a3)), remember(kind, a9),
     together(call, a7, a8))
CALL(Iscatter, iscatter, 9, (DATA, BUFFER, int, MPI_Comm, MPI_Request*),
     (is_root(a7, a8) ? collective(a2, a3) : collective(a5, a6)), remember(kind, a9),
     together(call, a7, a8))
CALL(Iallgather, iallgather, 8, (DATA, BUFFER, MPI_Comm, MPI_Request*), collective(a5, a6),
     remember(kind, a8), together(call, a7))
CALL(Iallgatherv, iallgatherv, 9,
     (DATA, void*, const int*, const int*, MPI_Datatype, MPI_Comm, MPI_Request*),
     collective_v(a5, a7, a8), remember(kind, a9), uneven(call, a5, a7, a8))
CALL(Ialltoall, ialltoall, 8, (DATA, BUFFER, MPI_Comm, MPI_Request*), collective(a5, a6),
     remember(kind, a8), together(call, a7))
CALL(Ialltoallv, ialltoallv, 10,
     (const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
      MPI_Datatype, MPI_Comm, MPI_Request*),
     collective_v(a6, a8, a9), remember(kind, a10), uneven_to_all(call, a6, a8, a9))

#define ONE_SIDED (Kind{one_sided, sized(a2, a3)})
CALL(Put, put, 8, (DATA, int, MPI_Aint, int, MPI_Datatype, MPI_Win), ONE_SIDED, NOTHING,
     put(call, {}))
CALL(Get, get, 8, (BUFFER, int, MPI_Aint, int, MPI_Datatype, MPI_Win), ONE_SIDED, NOTHING,
     put(call, {}))
CALL(Accumulate, accumulate, 9, (DATA, int, MPI_Aint, int, MPI_Datatype, MPI_Op, MPI_Win),
     ONE_SIDED, NOTHING, put(call, {}))
CALL(Get_accumulate, get_accumulate, 12,
     (DATA, BUFFER, int, MPI_Aint, int, MPI_Datatype, MPI_Op, MPI_Win),
     (Kind{one_sided, sized(a5, a6)}), NOTHING, put(call, {}))
CALL(Fetch_and_op, fetch_and_op, 7,
     (const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Op, MPI_Win),
     (Kind{one_sided, sized(1, a3)}), NOTHING, put(call, {}))
CALL(Compare_and_swap, compare_and_swap, 7,
     (const void*, const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Win),
     (Kind{one_sided, sized(1, a4)}), NOTHING, put(call, {}))
CALL(Rput, rput, 9, (DATA, int, MPI_Aint, int, MPI_Datatype, MPI_Win, MPI_Request*), ONE_SIDED,
     remember(kind, a9), put(call, {}))
CALL(Rget, rget, 9, (BUFFER, int, MPI_Aint, int, MPI_Datatype, MPI_Win, MPI_Request*), ONE_SIDED,
     remember(kind, a9), put(call, {}))
CALL(Win_fence, win_fence, 2, (int, MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_lock, win_lock, 4, (int, int, int, MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_unlock, win_unlock, 2, (int, MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_lock_all, win_lock_all, 2, (int, MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_unlock_all, win_unlock_all, 1, (MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_flush, win_flush, 2, (int, MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_flush_all, win_flush_all, 1, (MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_flush_local, win_flush_local, 2, (int, MPI_Win), (Kind{one_sided, 0}), NOTHING,
     put(call, {}))
CALL(Win_post, win_post, 3, (MPI_Group, int, MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_start, win_start, 3, (MPI_Group, int, MPI_Win), (Kind{one_sided, 0}), NOTHING,
     put(call, {}))
CALL(Win_complete, win_complete, 1, (MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))
CALL(Win_wait, win_wait, 1, (MPI_Win), (Kind{one_sided, 0}), NOTHING, put(call, {}))

#define FILE_IO (Kind{storage, sized(a3, a4)})
#define FILE_IO_AT (Kind{storage, sized(a4, a5)})
CALL(File_read, file_read, 5, (MPI_File, BUFFER, MPI_Status*), FILE_IO, NOTHING, put(call, {}))
CALL(File_read_all, file_read_all, 5, (MPI_File, BUFFER, MPI_Status*), FILE_IO, NOTHING,
     put(call, {}))
CALL(File_read_at, file_read_at, 6, (MPI_File, MPI_Offset, BUFFER, MPI_Status*), FILE_IO_AT,
     NOTHING, put(call, {}))
CALL(File_read_at_all, file_read_at_all, 6, (MPI_File, MPI_Offset, BUFFER, MPI_Status*), FILE_IO_AT,
     NOTHING, put(call, {}))
CALL(File_write, file_write, 5, (MPI_File, DATA, MPI_Status*), FILE_IO, NOTHING, put(call, {}))
CALL(File_write_all, file_write_all, 5, (MPI_File, DATA, MPI_Status*), FILE_IO, NOTHING,
     put(call, {}))
CALL(File_write_at, file_write_at, 6, (MPI_File, MPI_Offset, DATA, MPI_Status*), FILE_IO_AT,
     NOTHING, put(call, {}))
CALL(File_write_at_all, file_write_at_all, 6, (MPI_File, MPI_Offset, DATA, MPI_Status*), FILE_IO_AT,
     NOTHING, put(call, {}))
CALL(File_sync, file_sync, 1, (MPI_File), (Kind{storage, 0}), NOTHING, put(call, {}))
CALL(File_close, file_close, 1, (MPI_File*), (Kind{storage, 0}), NOTHING, put(call, {}))

CALL(Comm_dup, comm_dup, 2, (MPI_Comm, MPI_Comm*), (Kind{other, 0}), NOTHING, put(call, {}))
CALL(Comm_split, comm_split, 4, (MPI_Comm, int, int, MPI_Comm*), (Kind{other, 0}), NOTHING,
     put(call, {}))
CALL(Comm_create, comm_create, 3, (MPI_Comm, MPI_Group, MPI_Comm*), (Kind{other, 0}), NOTHING,
     put(call, {}))
CALL(Comm_free, comm_free, 1, (MPI_Comm*), freed(a1), NOTHING, put(call, {}))
CALL(Win_create, win_create, 6, (void*, MPI_Aint, int, MPI_Info, MPI_Comm, MPI_Win*),
     (Kind{other, 0}), NOTHING, put(call, {}))
CALL(Win_free, win_free, 1, (MPI_Win*), (Kind{other, 0}), NOTHING, put(call, {}))
