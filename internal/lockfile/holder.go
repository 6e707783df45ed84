package lockfile

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"refaudit/internal/vfs"
)

// PIDFile is git's file beside the lock on path that names its holder: packed-refs~pid.lock for packed-refs.lock.
func PIDFile(path string) string { return path + "~pid" + Suffix }

// writePID leaves our number beside the lock. Like git it does not insist.
func writePID(fsys vfs.FS, path string) bool {
	f, err := fsys.Create(path, 0o666)
	if err != nil {
		return false
	}
	_, err = fmt.Fprintf(f, "pid %d\n", os.Getpid())
	if cerr := f.Close(); err != nil || cerr != nil {
		fsys.Remove(path)
		return false
	}
	return true
}

// maxPIDFile bounds what is read of a PID file.
const maxPIDFile = 64

// Holder reads the process id that the holder of the lock on path left beside it; false if
// there is none.
func Holder(fsys vfs.FS, path string) (int, bool) {
	b, _, err := vfs.ReadFile(fsys, PIDFile(path), maxPIDFile)
	if err != nil {
		return 0, false
	}
	digits, ok := bytes.CutPrefix(bytes.TrimRight(b, " \t\r\n"), []byte("pid "))
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(string(digits))
	if err != nil || n <= 0 {
		return 0, false
	}
	return n, true
}
