/* Inside of the fingerprint: the field table and the readers behind it.
 *
 * A field is one row in fingerprint.c: where it stands, how much a difference
 * matters, and the function that reads it. Readers live in fp_GROUP.c; one that
 * cannot know its fact returns value_na() with the reason. Only fingerprint*.c
 * and fp_*.c include this header. */
#pragma once

#include "host/fingerprint.h"

struct fp {
    const struct fingerprint_input *input;
    const struct host *host;
    struct arena *arena; /* the host's */
    const char *proc;    /* "/proc/self", or "/proc/PID" of the attach target */

    /* Read once, used by many fields; empty when it could not be read. */
    struct str cpuinfo;
    struct str meminfo;
    struct str stat;
    uint64_t stat_ns; /* when `stat` was read, CLOCK_MONOTONIC */

    const struct fp_mount *mount;      /* of the folder; NULL with the reason: */
    const char *mount_na;              /* why there is none */
    const struct fp_cgroups *cgroups;  /* never NULL; may be empty */
    const struct fp_container *inside; /* container and hypervisor; never NULL */
    double resident_share;             /* of the binary, 0 to 1; NaN with the reason: */
    const char *resident_na;
};

/* What a difference between two fingerprints means. */
enum fp_class {
    FP_MUST,   /* results are not comparable */
    FP_SHOULD, /* results may differ because of it: said, not forbidden */
    FP_INFO,   /* belongs to one run; never compared */
};

struct fp_field {
    const char *group;
    const char *key;
    const char *title;
    enum fp_class class;
    struct value (*read)(const struct fp *fp, const struct fp_field *field);
    const char *arg;    /* for the reader: a path, a key, a tool */
    const char *effect; /* what a difference does; NULL for FP_INFO */
    double tolerance;   /* relative, for numbers that wobble without meaning */
};

extern const struct fp_field fp_fields[]; /* ends with a NULL group */
const struct fp_field *fp_field_find(struct str group, struct str key);

typedef struct value fp_reader(const struct fp *fp, const struct fp_field *field);

/* Helpers. */
struct value fp_file_text(const struct fp *fp, const char *path);
struct value fp_not_live(void); /* "n/a: known only on the machine itself" */
/* "0-3,8" as a set; false when it is no CPU list. CPUs past FP_CPUS_MAX are not taken. */
enum { FP_CPUS_MAX = 4096 };
struct fp_cpus {
    bool on[FP_CPUS_MAX];
    unsigned count;
};
bool fp_cpus_parse(struct str list, struct fp_cpus *ret);
/* Online CPUs; false when the machine does not say. */
bool fp_cpus_online(const struct host *host, struct fp_cpus *ret);

/* Readers that take all they need from the row. */
fp_reader fp_read_text; /* arg: path */
fp_reader fp_read_int;  /* arg: path */
fp_reader fp_read_meminfo;

/* fp_cpu.c */
fp_reader fp_cpu_model, fp_cpu_vendor, fp_cpu_microcode, fp_cpu_sockets, fp_cpu_cores,
    fp_cpu_threads, fp_cpu_numa, fp_cpu_smt, fp_cpu_governor, fp_cpu_driver, fp_cpu_preference,
    fp_cpu_turbo, fp_cpu_freq, fp_cpu_freq_now, fp_cpu_cache, fp_cpu_flags, fp_cpu_mitigations;

/* fp_memory.c */
fp_reader fp_memory_swap_used, fp_memory_thp, fp_memory_page_size, fp_cache_state, fp_cache_share;
int fp_resident_share(const char *path, double *ret_share, const char **ret_na);

/* fp_storage.c */
struct fp_mount;
fp_reader fp_storage_folder, fp_storage_mount, fp_storage_device, fp_storage_kind, fp_storage_model,
    fp_storage_scheduler, fp_storage_fs, fp_storage_options, fp_storage_space;
void fp_mount_find(struct fp *fp);

/* fp_kernel.c */
fp_reader fp_kernel_arch, fp_kernel_flags, fp_kernel_preemption, fp_kernel_distribution;

/* fp_toolchain.c */
fp_reader fp_tool_version, fp_libc_version, fp_own_version;

/* fp_isolation.c */
struct fp_container;
fp_reader fp_isolation_affinity, fp_isolation_scheduling, fp_isolation_container,
    fp_isolation_container_evidence, fp_isolation_vm, fp_isolation_vm_evidence, fp_isolation_steal,
    fp_isolation_steal_now, fp_isolation_load, fp_isolation_tasks, fp_isolation_cpu_list,
    fp_isolation_namespaces;
const struct fp_container *fp_container_find(const struct fp *fp);

/* fp_cgroup.c */
struct fp_cgroups;
fp_reader fp_cgroup_version, fp_cgroup_path, fp_cgroup_cpu_limit, fp_cgroup_memory_limit,
    fp_cgroup_cpuset, fp_cgroup_throttled;
const struct fp_cgroups *fp_cgroups_find(const struct fp *fp);

/* fp_run.c */
fp_reader fp_run_id, fp_run_git_revision, fp_run_git_branch, fp_run_time, fp_run_user, fp_run_cwd,
    fp_run_environment, fp_run_uptime;

/* fingerprint.c */
fp_reader fp_build_na; /* the reason why no binary was looked at */
