package remote

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
)

// PushOptions are git's, of the same names.
type PushOptions struct {
	DryRun          bool
	Atomic          bool
	Signed          string   // "", true or if-asked
	Leases          []string // ref:id
	ForceIfIncludes bool
	Options         []string // of the server: push-option
	Family          string
	Progress        bool
	Verbosity       int
}

// PushRow is what became of one ref.
type PushRow struct {
	Flag byte   // as git-push's porcelain output has it: ' ' '+' '-' '*' '!' '='
	Ref  string // on the server
	// Summary is "[rejected]", "[new branch]" or the like; Reason stands in brackets behind it.
	Summary, Reason string
}

// Push asks git to push refspecs from the client's repository. The pre-push hook has been run by
// whoever asks us. Where refs were rejected, the rows tell and the error is nil.
func (r *Remote) Push(ctx context.Context, refspecs []string, o PushOptions) ([]PushRow, error) {
	dir, err := makeTemp(r.fs, TempDir(), "refaudit-push-")
	if err != nil {
		return nil, err
	}
	rows, err := r.push(ctx, filepath.Join(dir, "config"), refspecs, o)
	return rows, errors.Join(err, removeAll(r.fs, dir))
}

// push hands the refspecs over in a config file: on a command line there would be room for some thousands only.
func (r *Remote) push(ctx context.Context, config string, refspecs []string, o PushOptions) ([]PushRow, error) {
	text := appendSetting(nil, "remote", remoteName, "url", r.URL.text, false)
	for _, spec := range refspecs {
		text = appendSetting(text, "remote", remoteName, "push", spec, false)
	}
	for _, name := range []string{"proxy", "proxyauthmethod", "receivepack"} {
		if v, set := r.settings.Get("remote." + r.o.Name + "." + name); set && r.o.Name != "" {
			text = appendSetting(text, "remote", remoteName, name, v, false)
		}
	}
	if err := writeFile(r.fs, config, text); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := r.run(ctx, child{env: r.client, args: pushArguments(config, o), stdout: &out})
	rows := parsePush(out.String())
	if rejected(rows) || err == nil {
		return rows, nil
	}
	return rows, err
}

func pushArguments(config string, o PushOptions) []string {
	args := []string{"-c", "include.path=" + config, "-c", "advice.pushUpdateRejected=false",
		"push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"}
	flag := func(on bool, name string) {
		if on {
			args = append(args, name)
		}
	}
	flag(o.DryRun, "--dry-run")
	flag(o.Atomic, "--atomic")
	flag(o.Family != "", "--"+o.Family)
	flag(o.Verbosity == 0, "--quiet")
	flag(o.Verbosity > 1, "--verbose")
	flag(o.Progress, "--progress")
	flag(!o.Progress, "--no-progress")
	if o.Signed != "" {
		args = append(args, "--signed="+o.Signed)
	} else {
		args = append(args, "--no-signed")
	}
	for _, lease := range o.Leases {
		args = append(args, "--force-with-lease="+lease)
	}
	if o.ForceIfIncludes {
		args = append(args, "--force-if-includes")
	} else {
		args = append(args, "--no-force-if-includes")
	}
	for _, option := range o.Options {
		args = append(args, "--push-option="+option)
	}
	return append(args, remoteName)
}

// rejected tells whether any row explains why git push has failed.
func rejected(rows []PushRow) bool {
	for _, row := range rows {
		if row.Flag == '!' {
			return true
		}
	}
	return false
}

// parsePush reads the output of git push --porcelain:
//
//	To <url>
//	<flag> TAB <from>:<to> TAB <summary> [SP "(" <reason> ")"]
//	Done
func parsePush(out string) []PushRow {
	var rows []PushRow
	for line := range strings.Lines(out) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(part) != 3 || len(part[0]) != 1 {
			continue
		}
		row := PushRow{Flag: part[0][0], Summary: part[2]}
		_, row.Ref, _ = strings.Cut(part[1], ":")
		if at := strings.Index(part[2], " ("); at >= 0 && strings.HasSuffix(part[2], ")") {
			row.Summary, row.Reason = part[2][:at], part[2][at+2:len(part[2])-1]
		}
		rows = append(rows, row)
	}
	return rows
}
