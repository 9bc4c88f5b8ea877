! The same kinds of calls in Fortran, whose constants mean something by their address.
program known
#ifdef F08
  use mpi_f08
  type(MPI_Status) :: status
  type(MPI_Request) :: requests(2)
#else
  use mpi
  integer :: status(MPI_STATUS_SIZE), requests(2)
#endif
  integer :: rank, ierr, i, total(1)
  character :: small(8), in(524288), out(524288)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do i = 1, 1000
    if (rank == 0) then
      call MPI_Send(small, 8, MPI_CHARACTER, 1, 0, MPI_COMM_WORLD, ierr)
    else
      call MPI_Recv(small, 8, MPI_CHARACTER, 0, 0, MPI_COMM_WORLD, status, ierr)
    end if
  end do
  do i = 1, 10
    call MPI_Irecv(in, 524288, MPI_CHARACTER, 1 - rank, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(out, 524288, MPI_CHARACTER, 1 - rank, 1, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  do i = 1, 5
    total(1) = 1
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  end do
  if (total(1) /= 2) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  call MPI_Finalize(ierr)
end program
