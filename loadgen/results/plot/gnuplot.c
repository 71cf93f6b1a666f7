/* SPDX-License-Identifier: Apache-2.0 */
/* The child, and the common look. */
#include "loadgen/results/plot/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const colours[] = {"#2166ac", "#e08214", "#1b7837", "#b2182b",
                                      "#762a83", "#35978f", "#8c510a", "#4d4d4d"};
static const char *const dashes[] = {"1", "(10,5)", "(3,3)", "(10,4,2,4)"};
static const int points[] = {7, 5, 9, 13};

#define COLOURS (sizeof(colours) / sizeof(colours[0]))
#define DASHES  (sizeof(dashes) / sizeof(dashes[0]))

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path);

    return length > strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

void gnuplot_text(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

void gnuplot_line(FILE *script, size_t colour, size_t dash, double width)
{
    fprintf(script, " with lines lc rgb '%s' lw %.1f dt %s", colours[colour % COLOURS], width,
            dashes[dash % DASHES]);
}

void gnuplot_line_points(FILE *script, size_t colour, size_t dash)
{
    fprintf(script, " with linespoints lc rgb '%s' lw 2 ps 0.8 pt %d dt %s",
            colours[colour % COLOURS], points[dash % DASHES], dashes[dash % DASHES]);
}

static void write_head(FILE *script, const char *path, unsigned width, unsigned height)
{
    const char *terminal = ends_with(path, ".svg") ? "svg dynamic" : "pngcairo";

    fprintf(script,
            "set terminal %s noenhanced size %u,%u font 'DejaVu Sans,11' background '#ffffff'\n",
            terminal, width, height);
    fputs("set output ", script);
    gnuplot_text(script, path);
    if (ends_with(path, ".gp"))
        fputs(" . '.png'", script);
    fputs("\nset encoding utf8\n"
          "set grid lc rgb '#dddddd' lt 1\n"
          "set border 3 lc rgb '#555555'\n"
          "set tics nomirror\n"
          "set key outside right center Left reverse samplen 3 spacing 1.2 width 1 noenhanced\n",
          script);
}

/* The child's end of the pipe becomes its standard input. */
static int start(struct gnuplot *gnuplot)
{
    char *arguments[] = {(char[]){"gnuplot"}, (char[]){"-"}, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    /* It draws there when it can't open the picture. */
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(&gnuplot->child, "gnuplot", &actions, NULL, arguments, environ);

    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (error) {
        gnuplot->child = 0;
        close(ends[1]);
        return error;
    }
    gnuplot->script = fdopen(ends[1], "w");
    return gnuplot->script ? 0 : errno;
}

int gnuplot_begin(struct gnuplot *gnuplot, const char *path, unsigned width, unsigned height)
{
    *gnuplot = (struct gnuplot){.path = path};
    if (ends_with(path, ".gp")) {
        gnuplot->script = fopen(path, "we");
        if (!gnuplot->script) {
            fprintf(stderr, "spillload plot: %s: %s\n", path, strerror(errno));
            return -1;
        }
    } else if (ends_with(path, ".png") || ends_with(path, ".svg")) {
        signal(SIGPIPE, SIG_IGN);
        int error = start(gnuplot);

        if (error) {
            fprintf(stderr, "spillload plot: gnuplot could not be started: %s%s\n", strerror(error),
                    error == ENOENT ? " (install the package gnuplot-nox)" : "");
            return -1;
        }
    } else {
        fprintf(stderr, "spillload plot: -o %s: expected a name that ends in .png, .svg or .gp\n",
                path);
        return -1;
    }
    write_head(gnuplot->script, path, width, height);
    return 0;
}

bool gnuplot_finish(struct gnuplot *gnuplot)
{
    struct stat picture;
    int status = 0;

    fputs("unset output\n", gnuplot->script);
    bool good = fflush(gnuplot->script) == 0 && !ferror(gnuplot->script);

    good = fclose(gnuplot->script) == 0 && good;
    if (gnuplot->child) {
        while (waitpid(gnuplot->child, &status, 0) < 0 && errno == EINTR)
            continue;
        good = good && status == 0 && stat(gnuplot->path, &picture) == 0 && picture.st_size > 0;
    }
    /* An empty file is what gnuplot leaves when it stumbles. */
    if (!good && gnuplot->child && stat(gnuplot->path, &picture) == 0 && S_ISREG(picture.st_mode) &&
        picture.st_size == 0)
        unlink(gnuplot->path);
    if (!good)
        fprintf(stderr, "spillload plot: %s was not made%s\n", gnuplot->path,
                gnuplot->child ? ", see what gnuplot says above" : "");
    return good;
}
