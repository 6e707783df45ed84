package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"refaudit/repo"
	"refaudit/reports"
	"refaudit/scan"
)

type configOptions struct {
	gitDir string
	all    bool
	json   bool
	paths  []string
}

func configCommand(e env) *cli.Command {
	var o configOptions
	return &cli.Command{
		Name:      "config",
		Usage:     "print the settings in force, and where each comes from",
		ArgsUsage: "[PATH]",
		Description: "All that git's configuration has to say to refaudit, as it holds for a repository: refaudit.*,\n" +
			"fsck.*, receive.fsck.*, and what of core.* and others matters. Without a repository: as it holds\n" +
			"for all of yours. Exit code: 129 if a setting can't be followed.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "git-dir", Destination: &o.gitDir, Usage: "the repository's git `DIR`, as with git"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Destination: &o.all, Usage: "also what is not set and has no value by default"},
			&cli.BoolFlag{Name: "json", Destination: &o.json, Usage: "one JSON object a line"},
		},
		Action: func(c *cli.Context) error {
			o.paths = c.Args().Slice()
			return runConfig(e, o)
		},
	}
}

func runConfig(e env, o configOptions) error {
	c, where, err := o.config(e)
	if err != nil {
		return err
	}
	write := writeSetting
	if o.json {
		write = writeSettingJSON
	}
	var b strings.Builder
	bad := false
	for _, f := range settingsOf(c) {
		bad = bad || f.wrong != ""
		if o.all || f.value.Key != "" || f.preset != "" {
			write(&b, where, &f)
		}
	}
	if _, err := io.WriteString(e.stdout, b.String()); err != nil {
		return err
	}
	for _, err := range c.Refused {
		bad = true
		fmt.Fprintf(e.stderr, "refaudit: %s\n", reports.Escape(err.Error()))
	}
	if bad {
		return exitWith(exitUsage)
	}
	return nil
}

// config is the configuration that is asked about, and of which repository it is.
func (o *configOptions) config(e env) (*repo.Config, string, error) {
	ro := e.seeing()
	if len(o.paths) > 1 || len(o.paths) == 1 && o.gitDir != "" {
		return nil, "", usagef("config takes one repository")
	}
	users, err := repo.UserConfig(ro)
	if err != nil {
		return nil, "", &usageError{err}
	}
	path, how := e.dir, scan.ByFolder
	switch {
	case o.gitDir != "":
		path, how = o.gitDir, scan.ByGitDir
	case len(o.paths) == 1:
		path, how = o.paths[0], scan.ByPath
	}
	t, err := scan.Open(path, how, ro)
	if how == scan.ByFolder && errors.Is(err, repo.ErrNotFound) {
		return users, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return t.Repo.Config, t.Repo.GitDir, nil
}

func writeSetting(b *strings.Builder, _ string, f *inForce) {
	value, from := f.preset, "default"
	if f.value.Key != "" {
		value, from = f.value.Text, f.value.Origin.String()
		if f.value.NoValue {
			value = "true"
		}
		if f.value.File != "" {
			from = f.value.Scope.String() + " " + from
		}
	}
	if f.value.Key == "" && f.preset == "" {
		from = "not set"
	}
	line := fmt.Sprintf("%s = %s", f.key, reports.Escape(value))
	fmt.Fprintf(b, "%-44s (%s)\n", line, reports.Escape(from))
	if f.wrong != "" {
		fmt.Fprintf(b, "    not followed: it %s\n", f.wrong)
	}
}

func writeSettingJSON(b *strings.Builder, where string, f *inForce) {
	line := struct {
		Schema  string  `json:"schema"`
		Type    string  `json:"type"`
		Repo    string  `json:"repo,omitempty"`
		Key     string  `json:"key"`
		Value   *string `json:"value"`
		Raw     []byte  `json:"value_b64,omitempty"`
		Default bool    `json:"default"`
		Scope   string  `json:"scope,omitempty"`
		File    string  `json:"file,omitempty"`
		Line    int     `json:"line,omitempty"`
		Wrong   string  `json:"not_followed,omitempty"`
	}{Schema: reports.Schema, Type: "setting", Repo: where, Key: f.key, Wrong: f.wrong, Default: f.value.Key == ""}
	value := f.preset
	if v := &f.value; v.Key != "" {
		value, line.Scope, line.File, line.Line = v.Text, v.Scope.String(), v.File, v.Line
		if v.NoValue {
			value = "true"
		}
	}
	switch {
	case !utf8.ValidString(value):
		line.Raw = []byte(value)
	case f.value.Key != "" || value != "":
		line.Value = &value
	}
	row, err := json.Marshal(line)
	if err != nil {
		panic(err) // nothing here that JSON can't hold
	}
	b.Write(append(row, '\n'))
}
