package remote

import (
	"fmt"
	"slices"
	"strings"

	"refaudit/internal/gitconfig"
)

const allowVariable = "GIT_ALLOW_PROTOCOL"

// ours are the protocols that a git program may use for us, by git's names.
var ours = []string{"https", "ssh", "file"}

// others are the protocols that git knows besides, and ourselves: called again we would go round in a circle.
var others = []string{"http", "git", "ftp", "ftps", "ext", "fd", "refaudit"}

// rules are git's rules for protocols (git-config, protocol.allow), narrowed to ours.
type rules struct {
	allow    map[string]string // always, never or user: of each of ours
	never    []string          // everything else that is configured
	listed   bool              // GIT_ALLOW_PROTOCOL is set: it counts alone
	list     []string          // those of ours that are in it
	fromUser bool              // GIT_PROTOCOL_FROM_USER
}

func newRules(s Settings, env func(string) (string, bool)) (*rules, error) {
	r := &rules{allow: map[string]string{"https": "always", "ssh": "always", "file": "user"}, never: slices.Clone(others), fromUser: true}
	if all, set := s.Get("protocol.allow"); set {
		for _, p := range ours {
			r.allow[p] = all
		}
	}
	for name, v := range s.section("protocol") {
		switch {
		case v.Key != "allow" || name == "":
		case slices.Contains(ours, name):
			r.allow[name] = v.Value
		case !slices.Contains(r.never, name):
			r.never = append(r.never, name)
		}
	}
	if list, set := env(allowVariable); set {
		r.listed = true
		for _, p := range strings.Split(list, ":") {
			if slices.Contains(ours, p) {
				r.list = append(r.list, p)
			}
		}
	}
	if text, set := env("GIT_PROTOCOL_FROM_USER"); set {
		var ok bool
		if r.fromUser, ok = gitconfig.ParseBool(text); !ok {
			return nil, fmt.Errorf("GIT_PROTOCOL_FROM_USER: %q is not a boolean", text)
		}
	}
	return r, nil
}

// arguments hold a git program to the rules, whatever its configuration says.
func (r *rules) arguments() []string {
	args := []string{"-c", "protocol.allow=never"}
	for _, p := range r.never {
		args = append(args, "-c", "protocol."+p+".allow=never")
	}
	for _, p := range ours {
		args = append(args, "-c", "protocol."+p+".allow="+r.allow[p])
	}
	return args
}

// environment is the value that GIT_ALLOW_PROTOCOL is to have, if it is set at all.
func (r *rules) environment() (list string, set bool) { return strings.Join(r.list, ":"), r.listed }

// check tells, before anybody is asked, whether git will let us use the URL.
func (r *rules) check(u URL) error {
	refuse := func(format string, args ...any) error {
		return &Refused{URL: u.String(), Why: fmt.Sprintf(format, args...)}
	}
	if r.listed {
		if !slices.Contains(r.list, u.protocol) {
			return refuse("%s is not in %s", u.protocol, allowVariable)
		}
		return nil
	}
	switch strings.ToLower(r.allow[u.protocol]) {
	case "always":
		return nil
	case "user":
		if !r.fromUser {
			return refuse("protocol.%s.allow is user, and GIT_PROTOCOL_FROM_USER says that no user has chosen it", u.protocol)
		}
		return nil
	}
	return refuse("protocol.%s.allow is %s", u.protocol, r.allow[u.protocol])
}
