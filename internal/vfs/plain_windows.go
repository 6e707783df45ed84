package vfs

import "os"

// plainFile is a regular file that is read from start to end, or mapped, at once.
type plainFile struct{ *os.File }

// openPlain is openPath for a file that is read at once; also tells its size.
func (d *Dir) openPlain(path string) (plainFile, int64, error) {
	f, st, err := d.openPath(path)
	if err != nil {
		return plainFile{}, 0, err
	}
	return plainFile{f}, st.Size(), nil
}
