package crashfs

import (
	"errors"
	"io"
	"io/fs"

	"refaudit/internal/vfs"
)

// file is an open file, for reading or writing.
type file struct {
	fs     *FS
	node   *inode
	name   string
	closed bool
}

func (h *file) begin(op string) (bool, error) {
	if h.closed {
		return false, fs.ErrClosed
	}
	return h.fs.begin("%s %s", op, h.name)
}

func (h *file) Write(p []byte) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	happens, err := h.begin("write")
	if !happens {
		if errors.Is(err, ErrFault) {
			p = p[:len(p)/2]
			h.append(p)
			return len(p), pathErr("write", h.name, err)
		}
		return 0, pathErr("write", h.name, err)
	}
	h.append(p)
	return len(p), wrap("write", h.name, err)
}

func (h *file) append(p []byte) {
	h.node.data = append(h.node.data[:len(h.node.data):len(h.node.data)], p...)
	h.node.dirty, h.node.mtime = true, h.fs.tick()
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.begin("read"); err != nil {
		return 0, pathErr("read", h.name, err)
	}
	if off < 0 || off >= int64(len(h.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *file) Stat() (vfs.Info, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if _, err := h.begin("fstat"); err != nil {
		return vfs.Info{}, pathErr("stat", h.name, err)
	}
	return h.node.info(), nil
}

func (h *file) Chmod(mode fs.FileMode) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	happens, err := h.begin("chmod")
	if happens {
		h.node.mode = h.node.mode&^0o777 | mode
	}
	return wrap("chmod", h.name, err)
}

func (h *file) Chown(uid, gid int) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	happens, err := h.begin("chown")
	if happens {
		if uid >= 0 {
			h.node.uid = uint32(uid)
		}
		if gid >= 0 {
			h.node.gid = uint32(gid)
		}
	}
	return wrap("chown", h.name, err)
}

// Sync makes the bytes safe. When it fails they are lost for good, though reading still shows
// them: the kernel marks them clean, and a second sync succeeds without writing anything.
func (h *file) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	happens, err := h.begin("sync")
	if !happens {
		if errors.Is(err, ErrFault) {
			h.node.lost = true
		}
		return wrap("sync", h.name, err)
	}
	if !h.node.lost {
		h.node.disk, h.node.dirty = h.node.data, false
	}
	return wrap("sync", h.name, err)
}

func (h *file) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	happens, err := h.begin("close")
	if happens || errors.Is(err, ErrFault) {
		h.closed = true
	}
	return wrap("close", h.name, err)
}
