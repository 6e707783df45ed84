package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// isCold tells whether the page cache holds nothing of a file. Where that can't be told, it is not.
func isCold(f *os.File) bool {
	var all unix.CachestatRange // a length of 0 is the whole file
	var st unix.Cachestat_t
	return unix.Cachestat(uint(f.Fd()), &all, &st, 0) == nil && st.Cache == 0
}

func forget(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// Of ioprio_set(2): whose priority is set, and the class that gets the disk when nobody else wants it.
const (
	ioprioWhoProcess = 1
	ioprioClassIdle  = 3 << 13
)

// IdleIO gives every thread of the process the idle class of the disk's scheduler (as ionice -c 3
// does); threads that begin later have it from those that start them. It has an effect where the scheduler knows classes: bfq,
// and mq-deadline.
func IdleIO() error {
	done := map[int]bool{}
	for {
		tasks, err := filepath.Glob("/proc/self/task/*")
		if err != nil {
			return err
		}
		more := false
		for _, t := range tasks {
			tid, err := strconv.Atoi(filepath.Base(t))
			if err != nil || done[tid] {
				continue
			}
			if _, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, uintptr(tid), ioprioClassIdle); e != 0 && !errors.Is(e, unix.ESRCH) {
				return os.NewSyscallError("ioprio_set", e)
			}
			done[tid], more = true, true
		}
		if !more { // a thread that an unset one has started meanwhile would have been found
			if len(done) == 0 {
				return errors.New("/proc/self/task can't be read")
			}
			return nil
		}
	}
}

// DiskRead is how many bytes the process has made the disks read so far, through maps too. What the
// page cache had does not count.
func DiskRead() (int64, error) {
	var u unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &u)
	return int64(u.Inblock) * 512, err
}
