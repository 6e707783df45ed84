package remote

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"

	"refaudit/internal/gitconfig"
)

// Setting is one line of the client's configuration.
type Setting struct {
	Scope   string // system, global, local, worktree or command
	Key     string // section and variable in lower case
	Value   string
	NoValue bool // there is no "="
}

// Settings is the client's configuration, in the order in which git reads it.
type Settings []Setting

// readSettings asks git itself: it knows every include and condition that holds for the client.
func (r *Remote) readSettings(ctx context.Context) (Settings, error) {
	out, err := r.output(ctx, r.client, "config", "--list", "--show-scope", "-z")
	if err != nil {
		return nil, err
	}
	return parseSettings(out)
}

// parseSettings reads the output of git config --list --show-scope -z:
//
//	scope NUL key [LF value] NUL ...
func parseSettings(out []byte) (Settings, error) {
	var all Settings
	for len(out) > 0 {
		scope, rest, ok := bytes.Cut(out, []byte{0})
		entry, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 {
			return nil, fmt.Errorf("git config --list: output ends in the middle of an entry")
		}
		out = rest
		key, value, found := bytes.Cut(entry, []byte("\n"))
		all = append(all, Setting{Scope: string(scope), Key: string(key), Value: string(value), NoValue: !found})
	}
	return all, nil
}

// Get is the value that counts: the last. key is in git's own form, section and variable in lower case.
func (s Settings) Get(key string) (value string, set bool) {
	for _, v := range s {
		if v.Key == key {
			value, set = v.Value, true
		}
	}
	return value, set
}

// Bool is Get for a boolean; false where it is not set or is none.
func (s Settings) Bool(key string) bool {
	yes := false
	for _, v := range s {
		if v.Key == key {
			yes = v.NoValue
			if b, ok := gitconfig.ParseBool(v.Value); ok && !v.NoValue {
				yes = b
			}
		}
	}
	return yes
}

// section goes through a section: subsection, variable, setting.
func (s Settings) section(name string) iter.Seq2[string, Setting] {
	return func(yield func(string, Setting) bool) {
		for _, v := range s {
			section, sub, variable := gitconfig.SplitKey(v.Key)
			if section != name {
				continue
			}
			v.Key = variable
			if !yield(sub, v) {
				return
			}
		}
	}
}

// Promisor tells whether any remote has promised objects to the client.
func (s Settings) Promisor() bool {
	for remote, v := range s.section("remote") {
		if v.Key == "promisor" && s.Bool("remote."+remote+".promisor") || v.Key == "partialclonefilter" {
			return true
		}
	}
	_, set := s.Get("extensions.partialclone")
	return set
}

// notInherited are sections that mean the client's own repository, and nothing in a scratch one.
var notInherited = map[string]bool{"extensions": true, "include": true, "includeif": true, "remote": true, "branch": true,
	"submodule": true, "alias": true, "gc": true, "maintenance": true}

// notInheritedCore are variables of core that do.
var notInheritedCore = map[string]bool{"repositoryformatversion": true, "bare": true, "worktree": true, "hookspath": true,
	"fsmonitor": true, "alternaterefscommand": true, "alternaterefsprefixes": true, "splitindex": true, "sparsecheckout": true, "sparsecheckoutcone": true}

// inherited is what a scratch repository has from the client's own files, as a config file. What
// stands in system and global files, or comes with the command, git reads there anyway.
func (s Settings) inherited() []byte {
	var b []byte
	for _, v := range s {
		section, sub, name := gitconfig.SplitKey(v.Key)
		if v.Scope != "local" && v.Scope != "worktree" || notInherited[section] || section == "core" && notInheritedCore[name] {
			continue
		}
		b = appendSetting(b, section, sub, name, v.Value, v.NoValue)
	}
	return b
}

// appendSetting writes one setting in the syntax of config files.
func appendSetting(b []byte, section, sub, name, value string, noValue bool) []byte {
	b = append(append(b, '['), section...)
	if sub != "" {
		b = append(b, ` "`...)
		b = append(b, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub)...)
		b = append(b, '"')
	}
	b = append(append(b, "]\n\t"...), name...)
	if !noValue {
		b = append(b, ` = "`...)
		b = append(b, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value)...)
		b = append(b, '"')
	}
	return append(b, '\n')
}
