package repo

import (
	"slices"

	"refaudit/internal/gitconfig"
	"refaudit/internal/vfs"
)

// Hooks says which commands git runs here on an event such as "reference-transaction": the paths
// of scripts that can be run, in core.hooksPath or hooks/, and the friendly names of hooks that the
// configuration sets up (since git 2.54), as "hook.<name>".
func (r *Repo) Hooks(event string) ([]string, error) {
	names, err := r.configuredHooks(event)
	if err != nil {
		return nil, err
	}
	dir, err := r.HooksDir()
	if err != nil {
		return nil, err
	}
	if script := joinPath(dir, event); vfs.Enter(script) == nil {
		names = append(names, script)
	}
	return names, nil
}

// HooksDir is the folder in which git looks for hooks: core.hooksPath, or hooks/. It need not exist.
func (r *Repo) HooksDir() (string, error) {
	dir, err := r.Config.Path("core.hooksPath")
	switch {
	case err != nil:
		return "", err
	case dir == "":
		return joinPath(r.CommonDir, "hooks"), nil
	case r.WorkTree != "":
		return joinPath(r.WorkTree, dir), nil
	}
	return joinPath(r.GitDir, dir), nil
}

// configuredHooks are the ones of hook.<name>.event, unless hook.<name>.enabled or
// hook.<event>.enabled turns them off.
func (r *Repo) configuredHooks(event string) ([]string, error) {
	var names []string
	disabled := map[string]bool{}
	err := r.Config.Section("hook", func(name, variable string, v Value) error {
		if name == "" {
			return nil
		}
		if v.NoValue {
			return &BadValue{v, errNoValue}
		}
		switch variable {
		case "event":
			if v.Text == "" || v.Text == event {
				names = slices.DeleteFunc(names, func(n string) bool { return n == name })
			}
			if v.Text == event {
				names = append(names, name)
			}
		case "enabled":
			if on, ok := gitconfig.ParseBool(v.Text); ok {
				disabled[name] = !on
			}
		}
		return nil
	})
	if err != nil || disabled[event] {
		return nil, err
	}
	var on []string
	for _, name := range names {
		if !disabled[name] {
			on = append(on, "hook."+name)
		}
	}
	return on, nil
}
