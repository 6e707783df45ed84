//go:build unix

package main

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"refaudit/internal/vfs"
)

// A file that is replaced keeps its group, else those who read it by that group are locked out. The child works
// with the owner's groups, and the file may have another one, which root has given it. So the child sends its
// new file to the parent, which gives it the group:
//
//	child -> parent   u32 group id, with the open file as a right (SCM_RIGHTS)
//	parent -> child   u8: 1 given, 0 refused
//
// The parent does so for regular files of the owner alone, and only with groups that files of the refs had when
// it began. All that a child under the owner's control gains by it is that a file of the owner's has a group that
// one of the repository has already. To start the child with these groups would be more: the owner may trace
// processes with the owner's id, or lay a link to somebody's file into the repository, and so would
// come to read whatever the group may read.

// groupFD is the socket for files in the child.
const groupFD = 4

// refGroups are the groups of what a repair may replace, in the main store and those of worktrees, and of the
// folders it stands in.
func refGroups(commonDir string) map[uint32]bool {
	groups := map[uint32]bool{}
	dirs := []string{commonDir}
	trees, _ := vfs.OS{}.ReadDir(filepath.Join(commonDir, "worktrees"))
	for _, name := range trees {
		dirs = append(dirs, filepath.Join(commonDir, "worktrees", name))
	}
	for _, dir := range dirs {
		paths := []string{dir}
		for _, name := range []string{"packed-refs", "refs", "reftable"} {
			paths = append(paths, filepath.Join(dir, name))
		}
		tables, _ := vfs.OS{}.ReadDir(filepath.Join(dir, "reftable"))
		for _, name := range tables {
			paths = append(paths, filepath.Join(dir, "reftable", name))
		}
		for _, path := range paths {
			// What can't be looked at is for the child to tell of.
			if st, err := (vfs.OS{}).Lstat(path); err == nil && (st.Mode.IsRegular() || st.Mode.IsDir()) {
				groups[st.GID] = true
			}
		}
	}
	return groups
}

// giveGroups answers the child until it ends.
func giveGroups(socket int, owner uint32, groups map[uint32]bool) {
	for {
		f, gid, err := receiveFile(socket)
		if err != nil {
			return
		}
		said := byte(0)
		if f != nil {
			st, err := f.Stat()
			if err == nil && st.Mode().IsRegular() && st.Sys().(*syscall.Stat_t).Uid == owner && groups[gid] && f.Chown(-1, int(gid)) == nil {
				said = 1
			}
			f.Close()
		}
		if _, err := syscall.Write(socket, []byte{said}); err != nil {
			return
		}
	}
}

// receiveFile receives a file and the group it is to have; no file where none or several came.
func receiveFile(socket int) (*os.File, uint32, error) {
	var gid [4]byte
	rights := make([]byte, syscall.CmsgSpace(4))
	if err := waitFor(socket); err != nil {
		return nil, 0, err
	}
	syscall.ForkLock.RLock() // no other child may be started in between: it would have the file too
	n, rn, _, _, err := syscall.Recvmsg(socket, gid[:], rights, 0)
	var fds []int
	if err == nil {
		fds, err = openRights(rights[:rn])
	}
	syscall.ForkLock.RUnlock()
	if err != nil || len(fds) != 1 || n != len(gid) {
		for _, fd := range fds {
			syscall.Close(fd)
		}
		return nil, 0, err
	}
	return os.NewFile(uintptr(fds[0]), "new file"), binary.BigEndian.Uint32(gid[:]), nil
}

// waitFor returns when something is to be read, io.EOF when nothing will be.
func waitFor(socket int) error {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(socket, one[:], syscall.MSG_PEEK)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		default:
			return nil
		}
	}
}

// openRights are the files that came with a message.
func openRights(b []byte) (fds []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(b)
	for i := range messages {
		got, ferr := syscall.ParseUnixRights(&messages[i])
		fds, err = append(fds, got...), errors.Join(err, ferr)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	return fds, err
}

// childFS is the file system of the child: its files get their groups from the parent, where the child can't
// give them itself.
func childFS() *vfs.GroupOS {
	syscall.CloseOnExec(groupFD)
	parent := &giver{socket: groupFD}
	return &vfs.GroupOS{Give: parent.give}
}

// giver is the parent, as the child sees it.
type giver struct {
	mu     sync.Mutex // an answer belongs to the question before it
	socket int
}

func (g *giver) give(f *os.File, gid uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := syscall.Sendmsg(g.socket, binary.BigEndian.AppendUint32(nil, gid), syscall.UnixRights(int(f.Fd())), nil, 0); err != nil {
		return false
	}
	var said [1]byte
	if err := waitFor(g.socket); err != nil {
		return false
	}
	n, err := syscall.Read(g.socket, said[:])
	return err == nil && n == 1 && said[0] == 1
}
