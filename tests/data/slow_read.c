/* Storage that is slow: every read of a file below $SLOW_FOLDER takes $SLOW_MS milliseconds more. For LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

ssize_t read(int descriptor, void *buffer, size_t size) {
  static ssize_t (*next)(int, void *, size_t);
  const char *folder = getenv("SLOW_FOLDER"), *time = getenv("SLOW_MS");
  char link[64], path[4096];
  if (next == NULL) next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
  if (folder != NULL && time != NULL) {
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
      path[length] = 0;
      if (strncmp(path, folder, strlen(folder)) == 0) {
        long milliseconds = atol(time);
        struct timespec delay = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        while (nanosleep(&delay, &delay) != 0 && errno == EINTR) {
        }
      }
    }
    errno = before;
  }
  return next(descriptor, buffer, size);
}
