/* The processes meet, say so by the file `inside`, and stay until there is a file `go`. */
#include <mpi.h>
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        close(open("inside", O_CREAT | O_WRONLY, 0600));
    while (access("go", F_OK))
        usleep(20000);
    MPI_Finalize();
    return 0;
}
