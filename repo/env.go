package repo

import (
	"fmt"
	"os"

	"refaudit/internal/gitconfig"
)

// Env looks up an environment variable; os.LookupEnv is one.
type Env func(name string) (value string, set bool)

// EmptyEnv is an environment without variables.
func EmptyEnv(string) (string, bool) { return "", false }

// MapEnv is the environment that a map holds.
func MapEnv(m map[string]string) Env {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// get is the value of a variable, "" where it is not set.
func (e Env) get(name string) string {
	v, _ := e(name)
	return v
}

// bool reads a variable as git does a boolean; an unset one is def.
func (e Env) bool(name string, def bool) (bool, error) {
	text, set := e(name)
	if !set {
		return def, nil
	}
	v, ok := gitconfig.ParseBool(text)
	if !ok {
		return def, fmt.Errorf("environment variable %s: %q is not a boolean", name, text)
	}
	return v, nil
}

// Options say whose eyes a repository is seen with. The zero Options are the process's own.
type Options struct {
	Env Env    // nil: the process's
	Cwd string // the folder from which relative paths start; "": the process's
	// Head reads the HEAD of a repository whose refs are no plain files, and tells the name of the
	// ref that it finally stands for; "" if it names an object. It is asked only where a config
	// file has an includeIf "onbranch:", before the rest of the configuration is known.
	// Without it such an include is refused, and Config.Refused says so.
	Head func(*Repo) (string, error)
	// UserFiles are shared by all repositories that are to be seen with one reading of the configuration
	// that is not their own; nil: each reads it for itself.
	UserFiles *UserFiles
}

func (o *Options) complete() error {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Cwd == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return err
		}
		o.Cwd = cwd
	}
	return nil
}

// abs makes a path absolute, but for "", which is no path. It leaves "link/.." alone, which means
// another folder than ".".
func (o *Options) abs(path string) string {
	if path == "" {
		return ""
	}
	return joinPath(o.Cwd, path)
}
