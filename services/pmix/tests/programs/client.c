/* A client of PMIx without MPI. Prints what it learns, a line for each fact. */
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pmix_proc_t self;

static void print_with(const char *what, pmix_rank_t rank, const char *key, pmix_info_t *infos, size_t count) {
    pmix_proc_t who;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&who, self.nspace, rank);
    pmix_status_t status = PMIx_Get(&who, key, infos, count, &value);
    if (status != PMIX_SUCCESS) {
        printf("%s: %s\n", what, PMIx_Error_string(status));
        return;
    }
    switch (value->type) {
    case PMIX_STRING: printf("%s=%s\n", what, value->data.string); break;
    case PMIX_UINT16: printf("%s=%u\n", what, value->data.uint16); break;
    case PMIX_UINT32: printf("%s=%u\n", what, value->data.uint32); break;
    case PMIX_PROC_RANK: printf("%s=%u\n", what, value->data.rank); break;
    case PMIX_BOOL: printf("%s=%d\n", what, value->data.flag); break;
    default: printf("%s has type %d\n", what, value->type);
    }
}

static void print(const char *what, pmix_rank_t rank, const char *key) { print_with(what, rank, key, NULL, 0); }

/* A value of an application, which is asked for with its number. */
static void print_of_app(const char *what, uint32_t number, const char *key) {
    pmix_info_t infos[2];
    bool yes = true;
    PMIX_INFO_LOAD(&infos[0], PMIX_APP_INFO, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&infos[1], PMIX_APPNUM, &number, PMIX_UINT32);
    print_with(what, PMIX_RANK_WILDCARD, key, infos, 2);
}

/* A value of a node, which is asked for with its name. */
static void print_of_node(const char *what, const char *name, const char *key) {
    pmix_info_t infos[2];
    bool yes = true;
    PMIX_INFO_LOAD(&infos[0], PMIX_NODE_INFO, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&infos[1], PMIX_HOSTNAME, name, PMIX_STRING);
    print_with(what, PMIX_RANK_WILDCARD, key, infos, 2);
}

static void print_facts(void) {
    print("job", PMIX_RANK_WILDCARD, PMIX_JOBID);
    print("size", PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    print("universe", PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE);
    print("most", PMIX_RANK_WILDCARD, PMIX_MAX_PROCS);
    print("nodes", PMIX_RANK_WILDCARD, PMIX_NUM_NODES);
    print("apps", PMIX_RANK_WILDCARD, PMIX_JOB_NUM_APPS);
    print("local size", PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE);
    print("local peers", PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
    print("local leader", PMIX_RANK_WILDCARD, PMIX_LOCALLDR);
    print("app", self.rank, PMIX_APPNUM);
    print("app size", self.rank, PMIX_APP_SIZE);
    print_of_app("size of app 0", 0, PMIX_APP_SIZE);
    print_of_app("leader of app 0", 0, PMIX_APPLDR);
    print("app rank", self.rank, PMIX_APP_RANK);
    print("global rank", self.rank, PMIX_GLOBAL_RANK);
    print("local rank", self.rank, PMIX_LOCAL_RANK);
    print("node rank", self.rank, PMIX_NODE_RANK);
    print("node", self.rank, PMIX_NODEID);
    print("host", self.rank, PMIX_HOSTNAME);
    print("host of 0", 0, PMIX_HOSTNAME);
    print_of_node("peers of node0", "node0", PMIX_LOCAL_PEERS);
    print_of_node("size of node0", "node0", PMIX_LOCAL_SIZE);
    print("local rank of 0", 0, PMIX_LOCAL_RANK);
}

static void put(const char *key, const char *text) {
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, text, PMIX_STRING);
    PMIx_Put(PMIX_GLOBAL, key, &value);
    PMIX_VALUE_DESTRUCT(&value);
    PMIx_Commit();
}

static void fence(const char *what, const pmix_proc_t *who, size_t count, bool collects) {
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collects, PMIX_BOOL);
    printf("%s: %s\n", what, PMIx_Error_string(PMIx_Fence(who, count, &info, 1)));
}

static void ask_for_what_is_not_there(pmix_rank_t first, pmix_rank_t last) {
    pmix_info_t info;
    pmix_pdata_t found;
    pmix_app_t app;
    pmix_nspace_t started;
    pmix_proc_t some[2];
    PMIX_INFO_LOAD(&info, "name", "value", PMIX_STRING);
    printf("publish: %s\n", PMIx_Error_string(PMIx_Publish(&info, 1)));
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "name");
    printf("lookup: %s\n", PMIx_Error_string(PMIx_Lookup(&found, 1, NULL, 0)));
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("true");
    app.maxprocs = 1;
    printf("spawn: %s\n", PMIx_Error_string(PMIx_Spawn(NULL, 0, &app, 1, started)));
    PMIX_LOAD_PROCID(&some[0], self.nspace, first);
    PMIX_LOAD_PROCID(&some[1], self.nspace, last);
    if (self.rank == first || self.rank == last) fence("fence of some", some, 2, false);
}

int main(int argc, char **argv) {
    pmix_proc_t all, local;
    char key[32];
    if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) return 2;
    printf("rank=%u\n", self.rank);
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    if (argc > 1 && strcmp(argv[1], "abort") == 0) {
        PMIx_Abort(9, "no\nmore", NULL, 0);
        return 9;
    }
    print_facts();
    if (argc > 1 && strcmp(argv[1], "facts") == 0) {
        print("host of last", 3999, PMIX_HOSTNAME);
        return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 3;
    }
    put("address", "before");
    fence("first fence", &all, 1, true);
    print("collected address of 0", 0, "address");
    print("missing key of 0", 0, "nothing");
    snprintf(key, sizeof key, "late-%u", self.rank);
    put(key, "after");
    fence("second fence", NULL, 0, false);
    print("direct key of 0", 0, "late-0");
    PMIX_LOAD_PROCID(&local, self.nspace, self.rank);
    fence("fence of one", &local, 1, false);
    if (argc > 2) ask_for_what_is_not_there(atoi(argv[1]), atoi(argv[2]));
    fence("last fence", &all, 1, false);
    fflush(stdout);
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 3;
}
