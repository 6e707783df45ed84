//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"refaudit/internal/account"
	"refaudit/internal/vfs"
)

// selfPath is the program itself, which the other user need not be able to reach by its path.
func selfPath() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// startAs starts this program as another user, and runs fn on a socket that leads to it. Files of that user are given
// the groups that are those of refs below commonDir.
func startAs(ctx context.Context, e env, who vfs.Ident, commonDir string, fn func(io.ReadWriter) error) error {
	path, err := selfPath()
	if err != nil {
		return err
	}
	groups := refGroups(commonDir)
	mine, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer mine.Close()
	defer theirs.Close()
	give, ask, err := socketPair()
	if err != nil {
		return err
	}
	defer ask.Close()
	defer give.Close()
	asked, err := give.SyscallConn()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "child")
	cmd.Args[0] = "refaudit"
	cmd.ExtraFiles = []*os.File{theirs, ask}
	cmd.Stdout, cmd.Stderr = e.stderr, e.stderr
	cmd.Dir = "/"
	cmd.Env = envOf(who)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credentials(who)}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	theirs.Close()
	ask.Close()
	go asked.Control(func(fd uintptr) { giveGroups(int(fd), who.UID, groups) })
	defer asked.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	talked := fn(mine)
	mine.Close()
	ended := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.ExitCode() < 0 { // a signal: whatever it said is no answer
		return ended
	}
	return errors.Join(talked, ended)
}

// socketPair makes two ends of a socket.
func socketPair() (mine, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // no other child may be started in between: it would have the socket too
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "child"), os.NewFile(uintptr(fds[1]), "parent"), nil
}

// credentials are the ids of a user with all groups, as at a login.
func credentials(who vfs.Ident) *syscall.Credential {
	c := &syscall.Credential{Uid: who.UID, Gid: who.GID, Groups: []uint32{who.GID}}
	u, err := account.ByID(who.UID)
	if err != nil {
		return c // a user that only the disk knows
	}
	if groups, err := u.Groups(); err == nil {
		c.Groups = append(c.Groups, groups...)
	}
	return c
}

// envOf is our environment as the user would have it: nothing of root's home.
func envOf(who vfs.Ident) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == "HOME", name == "USER", name == "LOGNAME", strings.HasPrefix(name, "XDG_"), strings.HasPrefix(name, "SUDO_"):
		default:
			env = append(env, kv)
		}
	}
	if u, err := account.ByID(who.UID); err == nil {
		env = append(env, "HOME="+u.Home, "USER="+u.Name, "LOGNAME="+u.Name)
	}
	return env
}

// otherOwner tells whose a repository is, if we are root and it is not root's.
func otherOwner(gitDir string) (who vfs.Ident, other bool, err error) {
	if os.Geteuid() != 0 {
		return who, false, nil
	}
	st, err := vfs.OS{}.Stat(gitDir)
	if err != nil {
		return who, false, err
	}
	return vfs.Ident{UID: st.UID, GID: st.GID}, st.UID != 0, nil
}
