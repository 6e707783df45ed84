package vfs

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// coldDir holds two files that lie on the disk and not in the page cache. Where there is no disk
// below the temporary folder, or the kernel can't tell, there is nothing to test.
func coldDir(t *testing.T) *Dir {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ours", "theirs"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		forget(f)
		cold := isCold(f)
		f.Close()
		if !cold {
			t.Skip("the page cache can't be told, or is all there is of the file system")
		}
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func cachedPages(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all unix.CachestatRange
	var st unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &all, &st, 0); err != nil {
		t.Fatal(err)
	}
	return st.Cache
}

func TestTheCacheIsLeftAsItWas(t *testing.T) {
	d := coldDir(t)
	if _, err := os.ReadFile(d.Path("theirs")); err != nil { // a server has it in use
		t.Fatal(err)
	}
	LeaveCache(true)
	defer LeaveCache(false)
	before, err := DiskRead()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ours", "theirs"} {
		if _, err := d.ReadFile(name, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	after, err := DiskRead()
	if err != nil || after-before < 1<<20 || after-before >= 2<<20 {
		t.Errorf("%d bytes read from the disk, of one file of 1 MiB; %v", after-before, err)
	}
	if cachedPages(t, d.Path("ours")) == 0 {
		t.Fatal("what was read isn't cached: the test shows nothing")
	}
	DropCache(d.Root() + "x")
	if cachedPages(t, d.Path("ours")) == 0 {
		t.Error("they were dropped though they lie elsewhere")
	}
	DropCache(d.Root())
	if n := cachedPages(t, d.Path("ours")); n != 0 {
		t.Errorf("%d pages of ours are left", n)
	}
	if n := cachedPages(t, d.Path("theirs")); n != 256 {
		t.Errorf("%d of 256 pages of theirs are left", n)
	}
}

func TestAMappedFileIsDroppedOnceItIsUnmapped(t *testing.T) {
	d := coldDir(t)
	LeaveCache(true)
	defer LeaveCache(false)
	m, err := d.Map("ours")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i := 0; i < len(m.Bytes()); i += 4096 {
		sum += int(m.Bytes()[i])
	}
	if err := m.Close(); err != nil || sum != 0 {
		t.Fatal(err, sum)
	}
	DropCache()
	if n := cachedPages(t, d.Path("ours")); n != 0 {
		t.Errorf("%d pages are left", n)
	}
}

// Another file under the name is somebody else's, and may be in use.
func TestAReplacedFileIsNotDropped(t *testing.T) {
	d := coldDir(t)
	LeaveCache(true)
	defer LeaveCache(false)
	if _, err := d.ReadFile("ours", 1<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(d.Path("theirs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.Path("theirs"), d.Path("ours")); err != nil {
		t.Fatal(err)
	}
	DropCache()
	if n := cachedPages(t, d.Path("ours")); n != 256 {
		t.Errorf("%d of 256 pages are left", n)
	}
}

func TestEveryThreadIsIdle(t *testing.T) {
	if err := IdleIO(); err != nil {
		t.Fatal(err)
	}
	blocked := make(chan struct{})
	for range 4 { // threads that begin later
		go func() { runtime.LockOSThread(); <-blocked }()
	}
	defer close(blocked)
	runtime.Gosched()
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(tasks) == 0 {
		t.Fatal(tasks, err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			t.Fatal(err)
		}
		prio, _, e := unix.Syscall(unix.SYS_IOPRIO_GET, ioprioWhoProcess, uintptr(tid), 0)
		if e == 0 && prio != ioprioClassIdle {
			t.Errorf("thread %d has priority %#x", tid, prio)
		}
	}
}
