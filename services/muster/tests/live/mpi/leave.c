/* The process of rank 1 leaves the others in a barrier, in the way that the argument names. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argv[1], *own = getenv("SLURM_PROCID");
    int rank;

    if (!strcmp(way, "never") && own && atoi(own) == 1)
        return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        if (!strcmp(way, "abort"))
            MPI_Abort(MPI_COMM_WORLD, 3);
        if (!strcmp(way, "exit"))
            _exit(0);
        if (!strcmp(way, "kill"))
            raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
