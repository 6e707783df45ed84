package repo

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"refaudit/internal/gitconfig"
)

// Scope is the kind of place that a setting comes from; they are in the order in which git reads
// them, and a later one wins.
type Scope uint8

// The scopes of git config --show-scope.
const (
	ScopeSystem   Scope = iota + 1 // /etc/gitconfig
	ScopeGlobal                    // ~/.gitconfig and $XDG_CONFIG_HOME/git/config
	ScopeLocal                     // the repository's config
	ScopeWorktree                  // a worktree's config.worktree
	ScopeCommand                   // GIT_CONFIG_COUNT and GIT_CONFIG_PARAMETERS
)

var scopeNames = [...]string{"unknown", "system", "global", "local", "worktree", "command"}

func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return scopeNames[0]
}

// Protected tells that whoever writes the repository can't set it there: only what is so protected
// may name commands to be run, or lift a safety.
func (s Scope) Protected() bool {
	return s == ScopeSystem || s == ScopeGlobal || s == ScopeCommand
}

// Origin is where a setting stands.
type Origin struct {
	Scope Scope
	File  string // "" for ScopeCommand
	Line  int    // from 1; 0 for ScopeCommand
}

func (o Origin) String() string {
	if o.File == "" {
		return o.Scope.String()
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Value is one setting of a variable.
type Value struct {
	Key     string // section and variable in lower case
	Text    string
	NoValue bool // there is no "=": true as a boolean, else an error
	Origin
}

// BadValue is a setting that can't be understood.
type BadValue struct {
	Value Value
	Err   error
}

func (e *BadValue) Error() string {
	return fmt.Sprintf("bad config value %q for %s (%s): %v", e.Value.Text, e.Value.Key, e.Value.Origin, e.Err)
}

func (e *BadValue) Unwrap() error { return e.Err }

var (
	errNotBool = errors.New("not a boolean")
	errNoValue = errors.New("missing value")
	errNoHome  = errors.New("no such home folder")
)

// Config is all the configuration that holds for a repository. It is not changed once read, and
// safe for concurrent use. Keys are given as people write them: "core.packedRefsTimeout".
type Config struct {
	values []Value
	byKey  map[string][]int
	env    Env
	// Refused are includes that were not followed, each with the reason: their settings are missing here.
	Refused []error
}

func newConfig(env Env) *Config { return &Config{byKey: map[string][]int{}, env: env} }

func (c *Config) add(v Value) {
	c.byKey[v.Key] = append(c.byKey[v.Key], len(c.values))
	c.values = append(c.values, v)
}

// Values are all settings in the order in which git reads them.
func (c *Config) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for _, v := range c.values {
			if !yield(v) {
				return
			}
		}
	}
}

func (c *Config) find(key string) []int {
	var room [128]byte // asked for by the hundred, of which hardly any is set
	canonical, err := gitconfig.AppendCanonicalKey(room[:0], key)
	if err != nil {
		return nil
	}
	return c.byKey[string(canonical)]
}

// All are the settings of a variable, in order.
func (c *Config) All(key string) []Value {
	var all []Value
	for _, i := range c.find(key) {
		all = append(all, c.values[i])
	}
	return all
}

// Get is the setting of a variable that counts: the last.
func (c *Config) Get(key string) (Value, bool) {
	at := c.find(key)
	if len(at) == 0 {
		return Value{}, false
	}
	return c.values[at[len(at)-1]], true
}

// Protected is Get among the settings that the repository itself can't make.
func (c *Config) Protected(key string) (Value, bool) {
	at := c.find(key)
	for i := len(at) - 1; i >= 0; i-- {
		if v := c.values[at[i]]; v.Scope.Protected() {
			return v, true
		}
	}
	return Value{}, false
}

// Has tells whether anything is set in a section, whatever its subsection.
func (c *Config) Has(section string) bool {
	for _, v := range c.values {
		if in, _, _ := strings.Cut(v.Key, "."); strings.EqualFold(in, section) {
			return true
		}
	}
	return false
}

// Section goes through the settings of one section in order, with subsection ("" for none) and variable.
func (c *Config) Section(section string, each func(subsection, name string, v Value) error) error {
	section = strings.ToLower(section)
	for _, v := range c.values {
		in, sub, name := gitconfig.SplitKey(v.Key)
		if in != section {
			continue
		}
		if err := each(sub, name, v); err != nil {
			return err
		}
	}
	return nil
}

// Bool is a boolean as git reads one; def where it is not set. The error is a *BadValue.
func (c *Config) Bool(key string, def bool) (bool, error) {
	v, set := c.Get(key)
	if !set {
		return def, nil
	}
	return v.Bool()
}

// Bool reads the setting as a boolean. The error is a *BadValue.
func (v Value) Bool() (bool, error) {
	if v.NoValue {
		return true, nil
	}
	b, ok := gitconfig.ParseBool(v.Text)
	if !ok {
		return false, &BadValue{v, errNotBool}
	}
	return b, nil
}

// Int is a whole number of 32 bits, with a unit of k, m or g; def where it is not set. The error is a *BadValue.
func (c *Config) Int(key string, def int) (int, error) {
	v, set := c.Get(key)
	if !set {
		return def, nil
	}
	n, err := v.int(math.MaxInt32)
	return int(n), err
}

// Int64 is Int with 64 bits.
func (c *Config) Int64(key string, def int64) (int64, error) {
	v, set := c.Get(key)
	if !set {
		return def, nil
	}
	return v.int(math.MaxInt64)
}

func (v Value) int(max int64) (int64, error) {
	n, err := gitconfig.ParseInt(v.Text, max)
	if err != nil {
		return 0, &BadValue{v, err}
	}
	return n, nil
}

// String is a text, which must stand behind a "="; def where it is not set. The error is a *BadValue.
func (c *Config) String(key, def string) (string, error) {
	v, set := c.Get(key)
	if !set {
		return def, nil
	}
	if v.NoValue {
		return "", &BadValue{v, errNoValue}
	}
	return v.Text, nil
}

// Path is a path in which a leading ~, ~user or %(prefix)/ has been replaced; "" where it is not
// set, or is ":(optional)" and not there. A relative one is as it is written. The error is a *BadValue.
func (c *Config) Path(key string) (string, error) {
	v, set := c.Get(key)
	if !set {
		return "", nil
	}
	return c.pathOf(v)
}

func (c *Config) pathOf(v Value) (string, error) {
	if v.NoValue {
		return "", &BadValue{v, errNoValue}
	}
	text, optional := strings.CutPrefix(v.Text, ":(optional)")
	path, ok := expandPath(text, c.env, false)
	if !ok {
		return "", &BadValue{v, errNoHome}
	}
	if optional && isMissing(path) {
		return "", nil
	}
	return path, nil
}
