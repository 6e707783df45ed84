package vfs

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// An audit of a whole server reads each file once, beside a server that lives on what the page
// cache holds. guest remembers the files of which nothing was cached when we opened them: their
// pages are ours, and go again. A file of which the cache held any page is left to whoever put it there.
var guest struct {
	on   atomic.Bool
	mu   sync.Mutex
	cold []coldFile
}

type coldFile struct {
	path string
	st   fs.FileInfo
}

// LeaveCache makes the process a guest in the page cache, where the system can tell what the cache
// holds (Linux from 6.5 on); elsewhere it does nothing. From then on what a Dir opens or maps is noted,
// and DropCache has to be called now and then.
func LeaveCache(on bool) { guest.on.Store(on) }

// DropCache takes the pages of noted files below some folders out of the page cache again, those of
// all without a folder. Pages that are mapped just now stay. Call it when what was read is read.
func DropCache(below ...string) {
	if !guest.on.Load() {
		return
	}
	guest.mu.Lock()
	var rest, drop []coldFile
	for _, c := range guest.cold {
		if len(below) == 0 || liesBelow(c.path, below) {
			drop = append(drop, c)
		} else {
			rest = append(rest, c)
		}
	}
	guest.cold = rest
	guest.mu.Unlock()
	for _, c := range drop {
		dropFile(c)
	}
}

func liesBelow(path string, folders []string) bool {
	for _, dir := range folders {
		if strings.HasPrefix(path, dir+string(os.PathSeparator)) {
			return true
		}
	}
	return false
}

// noteCold notes a file that was just opened and not yet read.
func noteCold(f *os.File, path string, st fs.FileInfo) {
	if !guest.on.Load() || st.Size() == 0 || !isCold(f) {
		return
	}
	guest.mu.Lock()
	guest.cold = append(guest.cold, coldFile{path, st})
	guest.mu.Unlock()
}

// dropFile opens the file once more, since it was closed or only its mapping is left. Another file
// under the same name is not ours.
func dropFile(c coldFile) {
	f, err := openNonblock(c.path)
	if err != nil {
		return
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && os.SameFile(st, c.st) {
		forget(f)
	}
}
