package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Missing tells whether an error means that there is no such file, also where a file stands in the
// place of one of its folders.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Enter tells whether path, or a program of that name, is there: there is no right to ask for.
func Enter(path string) error {
	_, err := os.Stat(path)
	if err != nil && filepath.Ext(path) == "" {
		if _, exe := os.Stat(path + ".exe"); exe == nil {
			return nil
		}
	}
	return err
}

// Device is a number that tells the file systems of folders apart: here, none does.
func Device(string) (uint64, error) { return 0, nil }
