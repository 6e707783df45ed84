package vfs

import "path/filepath"

// RealPath is filepath.EvalSymlinks: path without symbolic links, cleaned; what is there must be there. On
// the usual path, which is absolute and has no link in it, the system says so in one question, where
// going through its components takes one for each.
func RealPath(path string) (string, error) {
	if filepath.IsAbs(path) && hasNoLinks(path) {
		return filepath.Clean(path), nil
	}
	return filepath.EvalSymlinks(path)
}
