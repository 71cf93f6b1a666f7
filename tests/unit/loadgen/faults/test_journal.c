/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal and its remedies on real processes: what is owed is done and nothing else, however
 * the file was left; a number that another process has now is not mistaken for the one that was
 * meant.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/faults/journal.h"
#include "loadgen/faults/target.h"

struct place {
    char folder[64];
    char link[80]; /* a name in it */
    pid_t child;
    struct target target;
};

/* A folder of our own, and a child that has been stopped. */
static int set_up(void **state)
{
    static struct place place;
    int status;

    strcpy(place.folder, "/tmp/spillload-test-XXXXXX");
    if (!mkdtemp(place.folder))
        return -1;
    snprintf(place.link, sizeof(place.link), "%s/link", place.folder);
    place.child = fork();
    if (place.child == 0) {
        for (;;)
            pause();
    }
    if (target_open(place.child, &place.target) != 0)
        return -1;
    kill(place.child, SIGSTOP);
    waitpid(place.child, &status, WUNTRACED);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    char command[128];

    kill(place->child, SIGKILL);
    waitpid(place->child, NULL, 0);
    target_close(&place->target);
    snprintf(command, sizeof(command), "rm -rf %s", place->folder);
    return system(command) == 0 ? 0 : -1;
}

static struct remedy go_on(const struct place *place)
{
    return (struct remedy){
        .kind = REMEDY_CONTINUE, .pid = place->child, .start_ticks = place->target.start_ticks};
}

/* SIGCONT is told to the parent: waited for, not polled for. */
static bool went_on(const struct place *place)
{
    int status;

    return waitpid(place->child, &status, WCONTINUED) == place->child && WIFCONTINUED(status);
}

static void test_owed_is_done_once(void **state)
{
    struct place *place = *state;
    struct journal journal;
    struct remedy remedy = go_on(place);
    int done;

    assert_int_equal(journal_create(place->folder, &journal), 0);
    assert_int_equal(journal_note(&journal, &remedy), 1);
    assert_int_equal(journal_settle(&journal, &done), 0);
    assert_int_equal(done, 1);
    assert_true(went_on(place));
    assert_false(target_stopped(&place->target));
    assert_int_equal(journal_settle(&journal, &done), 0);
    assert_int_equal(done, 0);
    journal_close(&journal, 0);
    assert_int_equal(access(journal.path, F_OK), -1);
}

static void test_struck_is_not_done(void **state)
{
    struct place *place = *state;
    struct journal journal;
    struct remedy remedy = go_on(place);
    int done;

    assert_int_equal(journal_create(place->folder, &journal), 0);
    journal_strike(&journal, journal_note(&journal, &remedy));
    assert_int_equal(journal_settle(&journal, &done), 0);
    assert_int_equal(done, 0);
    assert_true(target_stopped(&place->target));
    journal_close(&journal, 0);
}

static void test_another_process_of_the_number(void **state)
{
    struct place *place = *state;
    struct journal journal;
    struct remedy remedy = go_on(place);
    int done;

    remedy.start_ticks++;
    assert_int_equal(journal_create(place->folder, &journal), 0);
    assert_int_equal(journal_note(&journal, &remedy), 1);
    assert_int_equal(journal_settle(&journal, &done), 0);
    assert_int_equal(done, 1);
    assert_true(target_stopped(&place->target));
    journal_close(&journal, 0);
}

static void test_torn_last_line(void **state)
{
    struct place *place = *state;
    struct journal journal;
    char text[64];
    int done;

    assert_int_equal(journal_create(place->folder, &journal), 0);
    snprintf(text, sizeof(text), "+1 continue %d %llu", place->child,
             (unsigned long long)place->target.start_ticks);
    assert_int_equal(write(journal.fd, text, strlen(text)), strlen(text));
    assert_int_equal(journal_settle(&journal, &done), 0);
    assert_int_equal(done, 0);
    assert_true(target_stopped(&place->target));
    journal_close(&journal, 0);
}

static void test_another_boot(void **state)
{
    struct place *place = *state;
    struct journal journal;
    char text[128];
    int done;

    assert_int_equal(journal_create(place->folder, &journal), 0);
    assert_int_equal(ftruncate(journal.fd, 0), 0);
    snprintf(text, sizeof(text),
             "spillload-faults 1 00000000-0000-0000-0000-000000000000\n+1 continue %d %llu\n",
             place->child, (unsigned long long)place->target.start_ticks);
    assert_int_equal(write(journal.fd, text, strlen(text)), strlen(text));
    assert_int_equal(journal_settle(&journal, &done), 0);
    assert_int_equal(done, 0);
    assert_true(target_stopped(&place->target));
    journal_close(&journal, 0);
}

static void test_what_is_not_understood_stays(void **state)
{
    struct place *place = *state;
    struct journal journal;
    struct remedy remedy = go_on(place);
    int done;

    assert_int_equal(journal_create(place->folder, &journal), 0);
    assert_int_equal(journal_note(&journal, &remedy), 1);
    assert_int_equal(write(journal.fd, "+2 pray 7\n", 10), 10);
    assert_int_equal(journal_settle(&journal, &done), 1);
    assert_int_equal(done, 1);
    assert_true(went_on(place));
    journal_close(&journal, 1);
    assert_int_equal(access(journal.path, F_OK), 0);
}

static void test_held_ones_are_left_alone(void **state)
{
    struct place *place = *state;
    struct journal journal;
    struct journal other;

    assert_int_equal(journal_create(place->folder, &journal), 0);
    assert_int_equal(journal_claim(journal.path, &other), -EWOULDBLOCK);
    journal_close(&journal, 1);
    assert_int_equal(journal_claim(journal.path, &other), 0);
    journal_close(&other, 0);
}

static void test_folder_of_others(void **state)
{
    struct place *place = *state;

    assert_int_equal(journal_folder(place->folder), 0);
    assert_int_equal(chmod(place->folder, 0755), 0);
    assert_int_equal(journal_folder(place->folder), -EPERM);
    assert_int_equal(chmod(place->folder, 0700), 0);
    assert_int_equal(symlink(place->folder, place->link), 0);
    assert_int_equal(journal_folder(place->link), -EPERM);
}

static void test_remedies_as_text(void **state)
{
    static const char *const good[] = {
        "continue 4711 123456",
        "restart 4711 123456 cd /srv && exec ./server -p 80",
        "dissolve /sys/fs/cgroup/cpu/a b\t/sys/fs/cgroup/cpu",
        "network /run/netns/farm\tlo",
    };
    static const char *const wrong[] = {
        "",
        "continue",
        "continue 1",
        "continue 1 ",
        "continue x",
        "continue 0 5",
        "continue -4 5",
        "continue 1 2 3",
        "restart 1 2",
        "restart 1 2 ",
        "dissolve /a",
        "dissolve \t/a",
        "network a\t",
        "dissolve a\tb\tc",
        "continueing 1 2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct remedy remedy;
        char text[REMEDY_TEXT_BYTES];

        assert_int_equal(remedy_parse(good[i], &remedy), 0);
        assert_int_equal(remedy_format(&remedy, text), 0);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct remedy remedy;

        if (remedy_parse(wrong[i], &remedy) != -EINVAL)
            fail_msg("'%s' was taken", wrong[i]);
    }
}

static void test_whom_we_may_not_touch(void **state)
{
    struct place *place = *state;
    struct target target;
    char why[TARGET_WHY_BYTES];

    assert_true(target_allowed(&place->target, false, why));
    assert_int_equal(target_open(1, &target), 0);
    assert_false(target_allowed(&target, true, why));
    target_close(&target);
    assert_int_equal(target_open(getpid(), &target), 0);
    assert_false(target_allowed(&target, true, why));
    target_close(&target);
    assert_int_equal(target_open(getppid(), &target), 0);
    assert_false(target_allowed(&target, true, why));
    target_close(&target);
}

static void test_the_end_of_a_target(void **state)
{
    struct place *place = *state;
    struct target again;

    assert_false(target_gone(&place->target));
    kill(place->child, SIGKILL);
    waitpid(place->child, NULL, 0);
    assert_true(target_gone(&place->target));
    assert_int_equal(target_signal(&place->target, SIGCONT), -ESRCH);
    assert_int_equal(target_reopen(place->child, place->target.start_ticks, &again), -ESRCH);
}

int main(void)
{
#define WITH_CHILD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_CHILD(test_owed_is_done_once),
        WITH_CHILD(test_struck_is_not_done),
        WITH_CHILD(test_another_process_of_the_number),
        WITH_CHILD(test_torn_last_line),
        WITH_CHILD(test_another_boot),
        WITH_CHILD(test_what_is_not_understood_stays),
        WITH_CHILD(test_held_ones_are_left_alone),
        WITH_CHILD(test_folder_of_others),
        cmocka_unit_test(test_remedies_as_text),
        WITH_CHILD(test_whom_we_may_not_touch),
        WITH_CHILD(test_the_end_of_a_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
