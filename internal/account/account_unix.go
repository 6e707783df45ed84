//go:build unix && !darwin

package account

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"refaudit/internal/child"
)

// The user database: a line each, of fields that colons end.
//
//	name:password:uid:gid:full name:home:shell
//
// Format: passwd(5). getent prints the same.
const (
	fieldName = 0
	fieldUID  = 2
	fieldHome = 5
	fields    = 7
)

// database is the file of local users.
var database = "/etc/passwd"

// lineMost is how long a line of the database may be; a longer one ends the reading.
const lineMost = 1 << 16

// ByName finds a user by name. The error is ErrUnknown, or says what could not be asked.
func ByName(name string) (User, error) {
	if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, ":\n\x00") {
		return User{}, fmt.Errorf("user %q: %w", name, ErrUnknown)
	}
	ask := name
	if isNumber(name) {
		ask = "" // getent would take it for an id
	}
	return find(strconv.Quote(name), ask, func(f []string) bool { return f[fieldName] == name })
}

// ByID finds a user by id. The error is ErrUnknown, or says what could not be asked.
func ByID(uid uint32) (User, error) {
	id := strconv.FormatUint(uint64(uid), 10)
	return find(id, id, func(f []string) bool { return f[fieldUID] == id })
}

// find looks for a user in the file, then asks getent, unless ask is "".
func find(who, ask string, match func(fields []string) bool) (User, error) {
	f, err := os.Open(database)
	if err == nil {
		var u User
		u, err = search(f, match)
		f.Close()
		if err == nil {
			return u, nil
		}
	}
	if ask != "" {
		// An exit code other than 0 is "not found"; a machine without getent has no other users.
		out, err := output("getent", "passwd", ask)
		if errors.Is(err, errSlow) {
			return User{}, fmt.Errorf("user %s: getent: %w", who, err)
		}
		if err == nil {
			if u, err := search(bytes.NewReader(out), func([]string) bool { return true }); err == nil {
				return u, nil
			}
		}
	}
	return User{}, fmt.Errorf("user %s: %w", who, ErrUnknown)
}

// limit is how long a program may take to ask a directory on the network, which may hang.
var limit = time.Minute

var errSlow = errors.New("no answer in time")

// output is what a program prints.
func output(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errSlow)
	defer cancel()
	return child.Run(ctx, exec.Command(name, args...), io.ReadAll)
}

// search gives the first line that matches.
func search(r io.Reader, match func(fields []string) bool) (User, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		f := strings.Split(lines.Text(), ":")
		if len(f) == fields && match(f) {
			return User{Name: f[fieldName], Home: f[fieldHome]}, nil
		}
	}
	if err := lines.Err(); err != nil {
		return User{}, err
	}
	return User{}, ErrUnknown
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// Groups are the ids of all groups that a user is in, as at a login.
func (u User) Groups() ([]uint32, error) {
	out, err := output("id", "-G", "--", u.Name)
	if err != nil {
		return nil, fmt.Errorf("id -G %q: %w", u.Name, err)
	}
	var ids []uint32
	for _, word := range strings.Fields(string(out)) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("id -G %q: %w", u.Name, err)
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}
