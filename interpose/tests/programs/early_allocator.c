/*
 * An allocator of the program's own opens and reads files under its lock, from the very first call on, before any
 * constructor has run. A hook that allocates would come back into it and find the lock held.
 */
#include "program.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;
static char arena[64 << 20];
static size_t used;
static unsigned calls;
static int reentered, early_calls;

static void look_at_system(void)
{
    char text[64];
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text) != sizeof text || close(fd))
        _exit(93);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || recv(fd, text, 1, MSG_DONTWAIT) != -1 || close(fd))
        _exit(92);
}

static void *take(size_t size, size_t alignment)
{
    int saved = errno;
    if (inside) {
        reentered = 1;
        if (write(2, "the allocator was re-entered\n", 29) != 29)
            _exit(91);
        _exit(90);
    }
    inside = 1;
    pthread_mutex_lock(&lock);
    if (calls++ % 16 == 0)
        look_at_system();
    size_t start = (used + 16 + alignment - 1) / alignment * alignment;
    if (start + size > sizeof arena)
        _exit(89);
    used = start + size;
    memcpy(arena + start - sizeof size, &size, sizeof size);
    pthread_mutex_unlock(&lock);
    inside = 0;
    errno = saved;
    return arena + start;
}

void *malloc(size_t size) { return take(size, 16); }
void free(void *block) { (void)block; }
void *memalign(size_t alignment, size_t size) { return take(size, alignment < 16 ? 16 : alignment); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = memalign(alignment, size);
    return 0;
}

void *calloc(size_t count, size_t size)
{
    void *block = take(count * size, 16);
    return memset(block, 0, count * size);
}

void *realloc(void *block, size_t size)
{
    void *larger = take(size, 16);
    size_t old;
    if (block) {
        memcpy(&old, (char *)block - sizeof old, sizeof old);
        memcpy(larger, block, old < size ? old : size);
    }
    return larger;
}

static void early(void)
{
    early_calls++;
    look_at_system();
    free(malloc(100));
}

/* Before every constructor, a preloaded library's too. */
__attribute__((section(".preinit_array"), used)) static void (*before_all)(void) = early;
__attribute__((constructor(101))) static void first_constructor(void) { early(); }

static void *allocate(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        char *block = malloc(i);
        memset(block, i, i);
        free(block);
    }
    return NULL;
}

static void either(int fd, enum side side)
{
    pthread_t thread;
    MUST(-pthread_create(&thread, NULL, allocate, NULL));
    warm(fd, side);
    pthread_join(thread, NULL);
    say("early calls: %d", early_calls);
    say_yes("re-entered", reentered);
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
