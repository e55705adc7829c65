/* All files of tests of one layer as one program: linked once instead of once a file. UNIT_FILES
 * lists them, as FILE(name) each; the main() of every file has a name of its own (unit.h).
 *
 *     unit-base NAME    runs one file here, as if it were a program of its own
 *     unit-base         runs all, each in a child: one that crashes ends alone */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE(name) int unit_##name##_main(void);
UNIT_FILES
#undef FILE

static const struct file {
    const char *name;
    int (*run)(void);
} files[] = {
#define FILE(name) {#name, unit_##name##_main},
    UNIT_FILES
#undef FILE
};

enum { FILES = sizeof(files) / sizeof(*files) };

static int file_run(const struct file *file)
{
    printf("# %s/%s\n", UNIT_LAYER, file->name);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int status = file->run();
        fflush(NULL);
        _exit(status);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror(file->name);
        return 1;
    }
    if (WIFSIGNALED(status))
        printf("# %s/%s: %s\n", UNIT_LAYER, file->name, strsignal(WTERMSIG(status)));
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(int argc, char **argv)
{
    /* nohup and shells in the background ignore them, and what is tested would, too. */
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (argc == 1) {
        int failed = 0;
        for (size_t i = 0; i < FILES; i++)
            failed += file_run(&files[i]);
        printf("# %d of %d files failed\n", failed, FILES);
        return failed > 0;
    }
    for (size_t i = 0; argc == 2 && i < FILES; i++)
        if (strcmp(argv[1], files[i].name) == 0)
            return files[i].run();
    fprintf(stderr, "usage: %s [FILE]; the files are:", argv[0]);
    for (size_t i = 0; i < FILES; i++)
        fprintf(stderr, " %s", files[i].name);
    fprintf(stderr, "\n");
    return 2;
}
