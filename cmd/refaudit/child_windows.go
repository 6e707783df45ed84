package main

import (
	"context"
	"errors"
	"io"

	"refaudit/internal/vfs"
)

func startAs(context.Context, env, vfs.Ident, string, func(io.ReadWriter) error) error {
	return errors.ErrUnsupported
}

// otherOwner knows of nobody: there is no root on Windows.
func otherOwner(string) (vfs.Ident, bool, error) { return vfs.Ident{}, false, nil }

func childFS() vfs.OS { return vfs.OS{} }
