//go:build !linux

package vfs

import (
	"errors"
	"os"
)

// unnamedFile is what only Linux can make.
func unnamedFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
