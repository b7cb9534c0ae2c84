// SPDX-License-Identifier: Apache-2.0
// Cloudprofiler-like, ours from its description: what its paper and its documentation say of a
// buffered, compressed channel, written anew for this bench. Never a part of the product.
//
// A channel has 32 blocks of 1,000,000 records of 40 bytes. Its one producer fills a block, gives
// it away and takes an empty one, spinning while there is none. Four threads compress blocks
// (zstd, level 1), one puts them back in order and writes them: an int32 with the compressed size,
// then that many bytes. All of it is inside of the program that is measured.
#include <jni.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
#include <zstd.h>

enum { BLOCKS = 32, RECORDS = 1000000, COMPRESSORS = 4, CHANNELS = 2, LEVEL = 1 };

struct record {
    int64_t tuple;
    int64_t sec;
    int64_t nsec;
    uint64_t tsc;
    uint32_t aux;
};
_Static_assert(sizeof(struct record) == 40, "as described");

struct channel;

struct block {
    struct channel *channel;
    struct block *next;
    struct record *records;
    char *compressed;
    size_t used;
    size_t size; // compressed
    uint64_t number;
};

// First in, first out. Whoever finds it empty sleeps or spins.
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct block *first;
    struct block **last;
    atomic_int length;
};

struct channel {
    atomic_size_t index;
    struct block *current;
    uint64_t blocks; // given away so far
    struct queue empty;
    FILE *file;
    struct block *waiting[BLOCKS]; // compressed, for those before them to be written
    atomic_uint_fast64_t written;
};

static bool spins;
static struct queue full, compressed;
static struct channel channels[CHANNELS];
static int opened;

static void fail(const char *what) {
    fprintf(stderr, "cloudprofiler-like: %s\n", what);
    abort();
}

static void prepare(struct queue *queue) {
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->filled, NULL);
    queue->first = NULL;
    queue->last = &queue->first;
}

static void give(struct queue *queue, struct block *block) {
    pthread_mutex_lock(&queue->lock);
    block->next = NULL;
    *queue->last = block;
    queue->last = &block->next;
    atomic_fetch_add(&queue->length, 1);
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static struct block *take(struct queue *queue, bool spin) {
    for (;;) {
        while (spin && !atomic_load(&queue->length))
            _mm_pause();
        pthread_mutex_lock(&queue->lock);
        while (!spin && !queue->first)
            pthread_cond_wait(&queue->filled, &queue->lock);
        struct block *block = queue->first;
        if (block) {
            queue->first = block->next;
            if (!queue->first)
                queue->last = &queue->first;
            atomic_fetch_sub(&queue->length, 1);
        }
        pthread_mutex_unlock(&queue->lock);
        if (block)
            return block;
    }
}

static void *compress(void *unused) {
    (void)unused;
    for (;;) {
        struct block *block = take(&full, spins);
        size_t bytes = block->used * sizeof(struct record), bound = ZSTD_compressBound(bytes);
        if (!(block->compressed = malloc(bound)))
            fail("no memory");
        block->size = ZSTD_compress(block->compressed, bound, block->records, bytes, LEVEL);
        if (ZSTD_isError(block->size))
            fail(ZSTD_getErrorName(block->size));
        give(&compressed, block);
    }
    return NULL;
}

static void *write_in_order(void *unused) {
    (void)unused;
    for (;;) {
        struct block *block = take(&compressed, spins);
        struct channel *channel = block->channel;
        channel->waiting[block->number % BLOCKS] = block;
        uint64_t next = atomic_load(&channel->written);
        while ((block = channel->waiting[next % BLOCKS])) {
            channel->waiting[next % BLOCKS] = NULL;
            int32_t size = (int32_t)block->size;
            if (fwrite(&size, sizeof size, 1, channel->file) != 1 ||
                fwrite(block->compressed, block->size, 1, channel->file) != 1)
                fail("the file was not written");
            free(block->compressed);
            give(&channel->empty, block);
            atomic_store(&channel->written, ++next);
        }
    }
    return NULL;
}

static void hand_over(struct channel *channel, size_t used) {
    channel->current->used = used;
    channel->current->number = channel->blocks++;
    give(&full, channel->current);
}

JNIEXPORT void JNICALL Java_tare_moobench_MonitoredClassCloudprofilerLike_start(
    JNIEnv *env, jclass type, jboolean busy) {
    (void)env, (void)type;
    spins = busy;
    prepare(&full);
    prepare(&compressed);
    pthread_t thread;
    for (int number = 0; number < COMPRESSORS; number++)
        pthread_create(&thread, NULL, compress, NULL);
    pthread_create(&thread, NULL, write_in_order, NULL);
}

JNIEXPORT jlong JNICALL Java_tare_moobench_MonitoredClassCloudprofilerLike_open(
    JNIEnv *env, jclass type, jstring path) {
    (void)type;
    struct channel *channel = &channels[opened++];
    const char *name = (*env)->GetStringUTFChars(env, path, NULL);
    if (!name || !(channel->file = fopen(name, "wb")))
        fail("the file was not opened");
    (*env)->ReleaseStringUTFChars(env, path, name);
    prepare(&channel->empty);
    for (int number = 0; number < BLOCKS; number++) {
        struct block *block = calloc(1, sizeof *block);
        if (!block || !(block->records = malloc(RECORDS * sizeof(struct record))))
            fail("no memory");
        block->channel = channel;
        give(&channel->empty, block);
    }
    channel->current = take(&channel->empty, true);
    return (jlong)(intptr_t)channel;
}

JNIEXPORT void JNICALL Java_tare_moobench_MonitoredClassCloudprofilerLike_log(
    JNIEnv *env, jclass type, jlong handle, jlong tuple) {
    (void)env, (void)type;
    struct channel *channel = (struct channel *)(intptr_t)handle;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint32_t aux;
    uint64_t ticks = __rdtscp(&aux);
    _mm_lfence();
    size_t index = atomic_load(&channel->index);
    channel->current->records[index] =
        (struct record){tuple, now.tv_sec, now.tv_nsec, ticks, aux};
    if (++index == RECORDS) {
        hand_over(channel, index);
        channel->current = take(&channel->empty, true);
        index = 0;
    }
    atomic_store(&channel->index, index);
}

// What is in the block goes into the file, and the file is whole.
JNIEXPORT void JNICALL Java_tare_moobench_MonitoredClassCloudprofilerLike_close(
    JNIEnv *env, jclass type, jlong handle) {
    (void)env, (void)type;
    struct channel *channel = (struct channel *)(intptr_t)handle;
    size_t index = atomic_load(&channel->index);
    if (index)
        hand_over(channel, index);
    while (atomic_load(&channel->written) < channel->blocks)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (fclose(channel->file))
        fail("the file was not written");
}
