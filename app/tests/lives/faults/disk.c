/* A disk that fails on command and remembers what it was asked, put before the C library's own functions with LD_PRELOAD.
 *
 * Only files in the folder FAULTS_FOLDER are touched, and of those not SQLite's -shm, which is memory. The test and this
 * library share the page FAULTS_CONTROL (`struct control`, written by disk.rs): which operations fail, with which error, and
 * after how many of them the process dies. With FAULTS_TRACE every change is appended to that file (`struct record`, then
 * its bytes), from which cut.rs works out what a power cut leaves. So nothing is really synced here: it would only take time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Kinds of operations; OPEN is opening for writing, and changes of names. */
enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, OPEN = 8 };

struct control {
    uint32_t error;      /* the errno of operations that fail; 0: none does */
    uint32_t kinds;      /* which operations fail, a sum of the above */
    uint32_t every;      /* of those, every how many */
    uint32_t lie;        /* 1: a sync is answered with success, and does nothing */
    uint32_t die_at;     /* the number of the change before which the process kills itself; 0: never */
    uint32_t changes;    /* changes asked for so far */
    uint32_t candidates; /* operations so far that might have failed */
    uint32_t failed;     /* operations that did fail */
};

struct record {
    uint32_t operation; /* a letter: see cut.rs */
    uint32_t handle;
    uint64_t offset;
    uint64_t length; /* of the bytes that follow */
};

#define FILES_MAX 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile struct control *control;
static const char *folder;
static size_t folder_length;
static int trace = -1;
static uint32_t handles;
/* By descriptor: the handle of what is open there, 0 if it is none of ours. */
static uint32_t open_files[FILES_MAX];

__attribute__((constructor)) static void start(void) {
    folder = getenv("FAULTS_FOLDER");
    const char *page = getenv("FAULTS_CONTROL"), *traced = getenv("FAULTS_TRACE");
    if (!folder || !page) return;
    folder_length = strlen(folder);
    int file = syscall(SYS_openat, AT_FDCWD, page, O_RDWR | O_CLOEXEC, 0);
    void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || shared == MAP_FAILED) abort();
    control = shared;
    if (traced) trace = syscall(SYS_openat, AT_FDCWD, traced, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The name within our folder, "" for the folder itself; NULL if the path is none of ours. */
static const char *own(const char *path) {
    if (!control || strncmp(path, folder, folder_length) != 0) return NULL;
    const char *name = path + folder_length;
    if (*name != '/' && *name != 0) return NULL;
    size_t length = strlen(name);
    if (length >= 4 && strcmp(name + length - 4, "-shm") == 0) return NULL;
    return *name ? name + 1 : name;
}

static uint32_t handle_of(int file) {
    return control && file >= 0 && file < FILES_MAX ? open_files[file] : 0;
}

/* Appends to the trace, with the lock held: the order of its records is the order of what was done. */
static void note(char operation, uint32_t handle, uint64_t offset, const void *bytes, uint64_t length) {
    if (trace < 0) return;
    struct record record = {(uint32_t)operation, handle, offset, length};
    struct iovec parts[2] = {{&record, sizeof record}, {(void *)bytes, length}};
    if (syscall(SYS_writev, trace, parts, 2) != (long)(sizeof record + length)) abort();
}

/* Counts a change, with the lock held; dies if it is the one to die at. Whether it is to fail. */
static int change(uint32_t kind) {
    if (++control->changes == control->die_at) kill(getpid(), SIGKILL);
    if (!control->error || !(control->kinds & kind)) return 0;
    if (++control->candidates % control->every) return 0;
    control->failed++;
    errno = (int)control->error;
    return 1;
}

static int open_any(const char *path, int flags, mode_t mode) {
    const char *name = own(path);
    if (!name) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    pthread_mutex_lock(&lock);
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;
    int file = writes && change(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    int error = errno;
    if (file >= FILES_MAX) abort();
    if (file >= 0) {
        open_files[file] = ++handles;
        note(is_new ? 'c' : 'o', handles, 0, name, strlen(name));
        if (writes && (flags & O_TRUNC) && !is_new) note('t', handles, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return file;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPENING(function)                           \
    int function(const char *path, int flags, ...) { \
        va_list rest;                               \
        va_start(rest, flags);                      \
        mode_t mode = mode_of(flags, rest);         \
        va_end(rest);                               \
        return open_any(path, flags, mode);         \
    }
OPENING(open)
OPENING(open64)

int close(int file) {
    /* Before it is closed: another thread may be given the same number at once. */
    if (handle_of(file)) open_files[file] = 0;
    return (int)syscall(SYS_close, file);
}

static ssize_t write_at(int file, const void *bytes, size_t length, off_t offset) {
    pthread_mutex_lock(&lock);
    ssize_t written = change(WRITE) ? -1 : syscall(SYS_pwrite64, file, bytes, length, offset);
    int error = errno;
    if (written > 0) note('w', open_files[file], (uint64_t)offset, bytes, (uint64_t)written);
    pthread_mutex_unlock(&lock);
    errno = error;
    return written;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off_t offset) {
    if (handle_of(file)) return write_at(file, bytes, length, offset);
    return syscall(SYS_pwrite64, file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    return pwrite64(file, bytes, length, offset);
}

ssize_t write(int file, const void *bytes, size_t length) {
    if (!handle_of(file)) return syscall(SYS_write, file, bytes, length);
    ssize_t written = write_at(file, bytes, length, syscall(SYS_lseek, file, 0, SEEK_CUR));
    if (written > 0) syscall(SYS_lseek, file, written, SEEK_CUR);
    return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (!handle_of(file)) return syscall(SYS_writev, file, parts, count);
    /* The first part alone: a short write, which callers must be ready for. */
    return count ? write(file, parts[0].iov_base, parts[0].iov_len) : 0;
}

int ftruncate64(int file, off_t length) {
    if (!handle_of(file)) return (int)syscall(SYS_ftruncate, file, length);
    pthread_mutex_lock(&lock);
    int result = change(TRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, file, length);
    int error = errno;
    if (result == 0) note('t', open_files[file], (uint64_t)length, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int sync_file(int file) {
    pthread_mutex_lock(&lock);
    int result = change(SYNC) ? -1 : 0;
    int error = errno;
    if (!control->lie) note(result ? 'f' : 's', open_files[file], 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fsync(int file) { return handle_of(file) ? sync_file(file) : (int)syscall(SYS_fsync, file); }

int fdatasync(int file) { return handle_of(file) ? sync_file(file) : (int)syscall(SYS_fdatasync, file); }

int unlink(const char *path) {
    const char *name = own(path);
    if (!name) return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&lock);
    int result = change(OPEN) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    int error = errno;
    if (result == 0) note('u', 0, 0, name, strlen(name));
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int rename(const char *from, const char *to) {
    const char *name = own(from), *other = own(to);
    if (!name || !other) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    pthread_mutex_lock(&lock);
    int result = change(OPEN) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    int error = errno;
    if (result == 0) {
        note('m', 0, 0, name, strlen(name));
        note('n', 0, 0, other, strlen(other));
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}
