//go:build unix && !darwin

package account

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine makes a database, and a getent beside it that knows one user more.
func machine(t *testing.T, passwd string) {
	t.Helper()
	dir := t.TempDir()
	getent := "#!/bin/sh\ncase \"$1 $2\" in\n" +
		"\"passwd remote\"|\"passwd 7007\") echo 'remote:*:7007:7007::/net/remote:/bin/sh' ;;\n" +
		"\"passwd 0\") echo 'root:x:0:0::/root:/bin/sh' ;;\n*) exit 2 ;;\nesac\n"
	for name, text := range map[string]string{"getent": getent, "passwd": passwd} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	old := database
	database = filepath.Join(dir, "passwd")
	t.Cleanup(func() { database = old })
}

func TestUsersOfTheDatabaseAndOthers(t *testing.T) {
	machine(t, "# a comment\nbroken:x:1\nroot:x:0:0:root:/root:/bin/sh\nlocal:x:1000:1000:L:/home/local:/bin/sh\n0:x:1001:1001::/home/zero:/bin/sh\n")
	for _, c := range []struct {
		name, home string
	}{
		{"root", "/root"}, {"local", "/home/local"}, {"0", "/home/zero"}, {"remote", "/net/remote"},
		{"nobody-has-it", ""}, {"broken", ""}, {"", ""}, {"--help", ""}, {"local:x", ""}, {"1000", ""}, {"7007", ""},
	} {
		u, err := ByName(c.name)
		if c.home == "" {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %+v, error %v", c.name, u, err)
			}
			continue
		}
		if err != nil || u.Name != c.name || u.Home != c.home {
			t.Errorf("%q: %+v, error %v", c.name, u, err)
		}
	}
	for uid, name := range map[uint32]string{0: "root", 1000: "local", 1001: "0", 7007: "remote"} {
		if u, err := ByID(uid); err != nil || u.Name != name {
			t.Errorf("%d: %+v, error %v", uid, u, err)
		}
	}
	if _, err := ByID(1); !errors.Is(err, ErrUnknown) {
		t.Errorf("1: error %v", err)
	}
}

func TestWithoutADatabase(t *testing.T) {
	machine(t, "")
	database = filepath.Join(t.TempDir(), "none")
	if u, err := ByName("remote"); err != nil || u.Home != "/net/remote" {
		t.Errorf("%+v, error %v", u, err)
	}
	t.Setenv("PATH", "")
	if _, err := ByName("remote"); !errors.Is(err, ErrUnknown) {
		t.Errorf("without getent: error %v", err)
	}
}

// A directory on the network that doesn't answer is not one that has no such user.
func TestADirectoryThatHangs(t *testing.T) {
	machine(t, "local:x:1000:1000:L:/home/local:/bin/sh\n")
	dir := t.TempDir()
	for _, name := range []string{"getent", "id"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nsleep 1234\ntrue\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	defer func(old time.Duration) { limit = old }(limit)
	limit = 100 * time.Millisecond
	start := time.Now()
	u, err := ByName("local")
	if err != nil {
		t.Errorf("local: error %v", err)
	}
	if _, err := ByName("remote"); err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("remote: error %v", err)
	}
	if _, err := u.Groups(); err == nil {
		t.Error("groups that nobody has told")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// The standard library says the same of this machine.
func TestAsTheLibrary(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	u, err := ByName(me.Username)
	if err != nil || u.Home != me.HomeDir {
		t.Fatalf("%+v, error %v, want %+v", u, err, me)
	}
	want, err := me.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := u.Groups()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range ids {
		got = append(got, strconv.FormatUint(uint64(id), 10))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("groups %v, want %v", got, want)
	}
	if _, err := (User{Name: "nobody-has-it"}).Groups(); err == nil {
		t.Error("groups of nobody")
	}
}
