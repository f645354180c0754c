// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs processes that submit bios, each as a process of its own, past the page
 * cache. A bio goes at its time; or when there is room for it among those that
 * its process has under way, and after a pause; or in bursts: as many as the
 * process may have under way, and a pause after each wait.
 *
 *	replay PROCESSES DEVICE
 *
 * blklab writes PROCESSES (src/kernel/replayed/file.rs): a head, the
 * processes, and the bios of each. What became of them goes to standard output, a line
 * for each process: its pid, the first error, discards that the device did
 * not take.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x31636f72706b6c62ull
#define SECTOR 512ull
#define SECOND 1000000000ull
/* Bios that go to the kernel in one call. */
#define BATCH 128
#define EVENTS 64

struct head {
	uint64_t magic;
	uint32_t nr_processes;
	uint32_t unused;
};

enum kind {
	/* Every bio at its time. */
	KIND_TIMED,
	/* When there is room for it; but for the first, times are pauses. */
	KIND_ROOM,
	/* The same, and pauses count from where the process last went on. */
	KIND_PACED,
	/* In bursts; times are pauses after a wait. */
	KIND_BURSTS,
};

#define GROUP_BYTES 256

struct process {
	uint64_t nr_bios;
	/* Of bursts: when it starts, and the pause between two bios of one. */
	uint64_t start_ns;
	uint64_t gap_ns;
	uint32_t kind;
	uint32_t ioprio;
	/* Most bios that the kernel is asked to have under way. */
	uint32_t depth;
	/* Of bursts: it submits while fewer are under way, and waits until
	 * fewer than the second number are. */
	uint32_t burst;
	uint32_t room;
	uint32_t unused;
	/* The file that takes processes into its control group; empty: none. */
	char group[GROUP_BYTES];
};

enum op { OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH };

enum mark {
	/* Goes on to the medium. */
	MARK_FUA = 1,
	/* The device's cache is flushed before. */
	MARK_FLUSH = 2,
	/* Is handed over with the next one. */
	MARK_HELD = 4,
	/* Takes room. */
	MARK_AWAITED = 8,
	/* The process went on here. */
	MARK_WOKE = 16,
};

struct bio {
	uint64_t time_ns;
	uint64_t sector;
	uint32_t nr_sectors;
	/* Waits until fewer than so many awaited ones are under way; 0: no. */
	uint32_t room;
	uint32_t op;
	uint32_t marks;
};

struct outcome {
	int pid;
	int error;
	unsigned int untaken;
};

/* What a process knows. */
struct task {
	int disk;
	void *buffer;
	aio_context_t context;
	struct iocb batch[BATCH];
	unsigned int nr_batch;
	/* These count the batch, too. */
	unsigned int under_way;
	unsigned int awaited;
	struct outcome *outcome;
};

static void failed(struct task *task, int error)
{
	if (!task->outcome->error)
		task->outcome->error = error;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = timespec_of(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void pause_for(uint64_t ns)
{
	struct timespec t = timespec_of(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

/* A bio is over that moves so many bytes. */
static void over(struct task *task, int awaited)
{
	task->under_way--;
	if (awaited)
		task->awaited--;
}

/* Takes ends of bios, and waits for so many. */
static void reap(struct task *task, long least)
{
	struct io_event events[EVENTS];
	long n, i;

	do {
		n = syscall(SYS_io_getevents, task->context, least,
			    (long)EVENTS, events, NULL);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		failed(task, errno);
		_exit(1);
	}
	for (i = 0; i < n; i++) {
		if (events[i].res < 0)
			failed(task, -events[i].res);
		else if ((uint64_t)events[i].res != events[i].data >> 1)
			failed(task, EIO);
		over(task, events[i].data & 1);
	}
}

/* Hands the batch over, under one plug. */
static void hand_over(struct task *task)
{
	/* What comes behind two that the kernel is to plug: it plugs three. */
	static struct iocb no_io = { .aio_lio_opcode = 0xffff };
	struct iocb *all[BATCH + 1];
	unsigned int done = 0, i;

	for (i = 0; i < task->nr_batch; i++)
		all[i] = &task->batch[i];
	all[i] = &no_io;
	while (done < task->nr_batch) {
		unsigned int left = task->nr_batch - done;
		long n = syscall(SYS_io_submit, task->context,
				 (long)left + (left == 2), all + done);

		if (n > 0) {
			done += n;
		} else if (n < 0 && errno == EAGAIN && task->under_way > left) {
			reap(task, 1);
		} else if (n == 0 || errno != EINTR) {
			failed(task, n == 0 ? EIO : errno);
			over(task, all[done]->aio_data & 1);
			done++;
		}
	}
	task->nr_batch = 0;
}

static void flush(struct task *task)
{
	if (fdatasync(task->disk) < 0)
		failed(task, errno);
}

static void discard(struct task *task, const struct bio *bio)
{
	uint64_t range[2] = { bio->sector * SECTOR, bio->nr_sectors * SECTOR };

	if (ioctl(task->disk, BLKDISCARD, range) == 0)
		return;
	if (errno == EOPNOTSUPP || errno == EINVAL)
		task->outcome->untaken++;
	else
		failed(task, errno);
}

static void transfer(struct task *task, const struct bio *bio)
{
	struct iocb *to = &task->batch[task->nr_batch++];
	uint64_t bytes = bio->nr_sectors * SECTOR;
	int awaited = !!(bio->marks & MARK_AWAITED);

	memset(to, 0, sizeof(*to));
	to->aio_data = bytes << 1 | awaited;
	to->aio_lio_opcode = bio->op == OP_READ ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
	to->aio_rw_flags = bio->marks & MARK_FUA ? RWF_DSYNC : 0;
	to->aio_fildes = task->disk;
	to->aio_buf = (uintptr_t)task->buffer;
	to->aio_nbytes = bytes;
	to->aio_offset = bio->sector * SECTOR;
	task->under_way++;
	task->awaited += awaited;
	if (!(bio->marks & MARK_HELD) || task->nr_batch == BATCH)
		hand_over(task);
}

static void submit(struct task *task, const struct bio *bio)
{
	if (bio->op == OP_READ || bio->op == OP_WRITE) {
		if (bio->marks & MARK_FLUSH) {
			hand_over(task);
			flush(task);
		}
		transfer(task, bio);
		return;
	}
	hand_over(task);
	if (bio->op == OP_FLUSH)
		flush(task);
	else
		discard(task, bio);
}

/* Waits until fewer bios than so many are under way; 0: for none. */
static void await_room(struct task *task, uint32_t room)
{
	if (!room || task->awaited < room)
		return;
	hand_over(task);
	reap(task, 0);
	while (task->awaited >= room)
		reap(task, 1);
}

static void join(struct task *task, const char *group)
{
	int fd = open(group, O_WRONLY);

	/* Who writes 0 means itself. */
	if (fd < 0 || write(fd, "0", 1) != 1)
		failed(task, errno);
	close(fd);
}

static void prepare(struct task *task, const struct process *process,
		    const struct bio *bios, const char *device)
{
	uint64_t longest = 1, bytes, i;

	for (i = 0; i < process->nr_bios; i++)
		if (bios[i].op < OP_DISCARD && bios[i].nr_sectors > longest)
			longest = bios[i].nr_sectors;
	bytes = longest * SECTOR;
	task->buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	task->disk = open(device, O_RDWR | O_DIRECT);
	if (task->buffer == MAP_FAILED || task->disk < 0 ||
	    syscall(SYS_io_setup, (long)process->depth, &task->context) < 0) {
		failed(task, errno);
		_exit(1);
	}
	memset(task->buffer, 0, bytes);
	if (process->group[0])
		join(task, process->group);
	prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L);
	if (process->ioprio && syscall(SYS_ioprio_set, 1, 0, process->ioprio) < 0)
		failed(task, errno);
}

static void run_timed(struct task *task, const struct process *process,
		      const struct bio *bios, uint64_t start)
{
	uint64_t i;

	for (i = 0; i < process->nr_bios; i++) {
		sleep_until(start + bios[i].time_ns);
		submit(task, &bios[i]);
	}
}

static void run_with_room(struct task *task, const struct process *process,
			  const struct bio *bios, uint64_t start)
{
	int paced = process->kind == KIND_PACED;
	uint64_t woke_at = 0, i;

	for (i = 0; i < process->nr_bios; i++) {
		const struct bio *bio = &bios[i];
		int woke = bio->marks & MARK_WOKE;

		if (i == 0) {
			sleep_until(start + bio->time_ns);
		} else {
			await_room(task, bio->room);
			if (paced && woke)
				sleep_until(woke_at + bio->time_ns);
			else if (bio->time_ns)
				pause_for(bio->time_ns);
		}
		if (paced && (woke || i == 0))
			woke_at = now();
		submit(task, bio);
	}
}

static void run_bursts(struct task *task, const struct process *process,
		       const struct bio *bios, uint64_t start)
{
	uint64_t i = 0, first;

	sleep_until(start + process->start_ns);
	while (i < process->nr_bios) {
		for (first = i; i < process->nr_bios; i++) {
			reap(task, 0);
			if (task->awaited >= process->burst)
				break;
			if (i > first && process->gap_ns)
				pause_for(process->gap_ns);
			submit(task, &bios[i]);
		}
		hand_over(task);
		if (i == process->nr_bios)
			break;
		await_room(task, process->room);
		if (bios[i].time_ns)
			pause_for(bios[i].time_ns);
	}
}

static void run(struct task *task, const struct process *process,
		const struct bio *bios, uint64_t start)
{
	switch (process->kind) {
	case KIND_TIMED:
		run_timed(task, process, bios, start);
		break;
	case KIND_BURSTS:
		run_bursts(task, process, bios, start);
		break;
	default:
		run_with_room(task, process, bios, start);
	}
	hand_over(task);
	while (task->under_way)
		reap(task, 1);
}

static const void *contents(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY);
	struct stat about;
	const void *at;

	if (fd < 0 || fstat(fd, &about) < 0)
		return NULL;
	*bytes = about.st_size;
	at = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static int complain(const char *what)
{
	fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t start = now();
	const struct process *processes;
	struct outcome *outcomes;
	const struct head *head;
	const struct bio *bios;
	size_t bytes;
	uint32_t i;

	if (argc != 3) {
		fprintf(stderr, "usage: replay PROCESSES DEVICE\n");
		return 2;
	}
	head = contents(argv[1], &bytes);
	if (!head || bytes < sizeof(*head) || head->magic != MAGIC)
		return complain(argv[1]);
	processes = (const struct process *)(head + 1);
	bios = (const struct bio *)(processes + head->nr_processes);
	outcomes = mmap(NULL, (head->nr_processes + 1) * sizeof(*outcomes),
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcomes == MAP_FAILED)
		return complain("no memory");
	for (i = 0; i < head->nr_processes; i++) {
		const struct process *process = &processes[i];
		pid_t pid = fork();

		if (pid < 0)
			return complain("a process cannot be made");
		if (pid == 0) {
			static struct task task;

			task.outcome = &outcomes[i];
			prepare(&task, process, bios, argv[2]);
			run(&task, process, bios, start);
			_exit(0);
		}
		outcomes[i].pid = pid;
		bios += process->nr_bios;
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	for (i = 0; i < head->nr_processes; i++)
		printf("%d %d %u\n", outcomes[i].pid, outcomes[i].error,
		       outcomes[i].untaken);
	return 0;
}
