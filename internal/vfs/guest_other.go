//go:build !linux

package vfs

import (
	"errors"
	"os"
)

func isCold(*os.File) bool { return false }

func forget(*os.File) {}

// IdleIO is for Linux.
func IdleIO() error { return errors.ErrUnsupported }

// DiskRead is for Linux.
func DiskRead() (int64, error) { return 0, errors.ErrUnsupported }
