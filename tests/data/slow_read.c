/* Storage that is slow: every read of a file below $SLOW_FOLDER takes $SLOW_MS milliseconds more, and every one of a file
   below $GONE_FOLDER $GONE_MS. For LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_below(const char *path, const char *folder, const char *time) {
  if (folder == NULL || time == NULL || strncmp(path, folder, strlen(folder)) != 0) return;
  long milliseconds = atol(time);
  struct timespec delay = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&delay, &delay) != 0 && errno == EINTR) {
  }
}

ssize_t read(int descriptor, void *buffer, size_t size) {
  static ssize_t (*next)(int, void *, size_t);
  char link[64], path[4096];
  if (next == NULL) next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
  int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = 0;
    wait_below(path, getenv("SLOW_FOLDER"), getenv("SLOW_MS"));
    wait_below(path, getenv("GONE_FOLDER"), getenv("GONE_MS"));
  }
  errno = before;
  return next(descriptor, buffer, size);
}
