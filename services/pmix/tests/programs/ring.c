/* Passes a number around all ranks, and sums the ranks. `ring`: no more. `abort N`: rank N then aborts with status 7.
   `leave N`: rank N then ends without finalizing, while the others wait for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size, number = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    if (rank == 0) {
        number = 1;
        MPI_Send(&number, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
        MPI_Recv(&number, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&number, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        number *= 2;
        MPI_Send(&number, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: number %d, sum %d\n", rank, size, number, sum);
    fflush(stdout);
    if (argc > 2 && atoi(argv[2]) == rank) {
        if (strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        if (strcmp(argv[1], "leave") == 0) _exit(3);
    }
    if (argc > 2) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
