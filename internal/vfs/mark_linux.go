package vfs

import "syscall"

func ctimeOf(s *syscall.Stat_t) syscall.Timespec { return s.Ctim }
