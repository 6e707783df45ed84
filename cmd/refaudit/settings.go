package main

import (
	"strconv"
	"strings"

	"refaudit/finding"
	"refaudit/internal/hook"
	"refaudit/repo"
)

// setting is one variable of git's configuration that has a say in what we do.
type setting struct {
	key       string // as people write it
	value     string // that holds where none is set; "": nothing
	many      bool   // each of its values counts, not the last alone
	protected bool   // what the repository itself says does not count
}

// settings are all of them but those of single message ids, which follow.
var settings = []setting{
	{key: "refaudit.skipList"},
	{key: "refaudit.hook.onError", value: answerWord(hook.Defaults.OnError)},
	{key: "refaudit.hook.onTimeout", value: answerWord(hook.Defaults.OnTimeout)},
	{key: "refaudit.hook.timeout", value: hook.Defaults.Timeout.String()},
	{key: "refaudit.hook.maxChainDepth", value: strconv.Itoa(hook.Defaults.MaxDepth)},
	{key: "refaudit.hook.maxTagSize", value: strconv.FormatInt(hook.Defaults.MaxTag, 10)},
	{key: "refaudit.guard.maxLost", value: "0"},
	{key: "refaudit.guard.ignore", many: true},
	{key: "refaudit.remote.onFinding", value: "refuse"},
	{key: "fsck.skipList"},
	{key: "receive.fsck.skipList"},
	{key: "core.repositoryFormatVersion", value: "0"},
	{key: "core.bare"},
	{key: "core.worktree"},
	{key: "core.ignoreCase", value: "false"},
	{key: "core.sharedRepository", value: "umask"},
	{key: "core.useReplaceRefs", value: "true"},
	{key: "core.preferSymlinkRefs", value: "false"},
	{key: "core.packedRefsTimeout", value: "1000"},
	{key: "core.filesRefLockTimeout", value: "100"},
	{key: "core.lockfilePid", value: "false"},
	{key: "core.fsync"},
	{key: "core.hooksPath", value: "hooks"},
	{key: "core.alternateRefsCommand", protected: true},
	{key: "core.alternateRefsPrefixes"},
	{key: "reftable.lockTimeout", value: "100"},
	{key: "reftable.blockSize", value: "4096"},
	{key: "reftable.restartInterval", value: "16"},
	{key: "reftable.indexObjects", value: "true"},
	{key: "extensions.objectFormat", value: "sha1"},
	{key: "extensions.refStorage", value: "files"},
	{key: "extensions.partialClone"},
	{key: "safe.directory", many: true, protected: true},
	{key: "safe.bareRepository", value: "all", protected: true},
	{key: "protocol.allow"},
}

func answerWord(a hook.Answer) string {
	if a == hook.Reject {
		return "reject"
	}
	return "allow"
}

// severityPrefixes are those of settings of single message ids: ours, git's own, and both for what is pushed.
var severityPrefixes = []string{"refaudit.", "fsck.", "refaudit.receive.", "receive.fsck."}

// inForce is a setting as it holds for a repository.
type inForce struct {
	key    string
	value  repo.Value // zero where none is set
	preset string     // the value that holds then
	wrong  string     // why it is not followed
}

// settingsOf are the settings that hold: those of the table, and the severities that are set.
func settingsOf(c *repo.Config) (all []inForce) {
	for _, s := range settings {
		all = append(all, s.of(c)...)
	}
	for _, prefix := range severityPrefixes {
		for i := range finding.Catalog {
			e := &finding.Catalog[i]
			key := prefix + string(e.ID)
			v, set := c.Get(key)
			if !set {
				continue
			}
			f := inForce{key: key, value: v}
			switch severity, ok := finding.ParseSeverity(v.Text); {
			case !ok:
				f.wrong = "takes error, warn, info or ignore"
			case severity < e.Floor:
				f.wrong = "can't be lowered below " + e.Floor.String()
			case strings.HasSuffix(prefix, "fsck.") && !e.Git:
				f.wrong = "is none of git's ids: only refaudit." + string(e.ID) + " counts"
			}
			all = append(all, f)
		}
	}
	return append(all, unknownSettings(c)...)
}

func (s *setting) of(c *repo.Config) (all []inForce) {
	for _, v := range c.All(s.key) {
		f := inForce{key: s.key, value: v}
		if s.protected && !v.Scope.Protected() {
			f.wrong = "counts only in system, global or command-line configuration"
			all = append(all, f)
			continue
		}
		if !s.many {
			all = dropFollowed(all)
		}
		all = append(all, f)
	}
	for i := range all {
		if all[i].wrong == "" {
			return all
		}
	}
	return append(all, inForce{key: s.key, preset: s.value})
}

// dropFollowed leaves what is not followed, and is to be told all the same.
func dropFollowed(all []inForce) (rest []inForce) {
	for _, f := range all {
		if f.wrong != "" {
			rest = append(rest, f)
		}
	}
	return rest
}

// unknownSettings are variables below refaudit. that nobody reads: somebody has misspelt them.
func unknownSettings(c *repo.Config) (all []inForce) {
	known := map[string]bool{}
	for _, s := range settings {
		known[strings.ToLower(s.key)] = true
	}
	for i := range finding.Catalog {
		for _, prefix := range severityPrefixes {
			known[strings.ToLower(prefix+string(finding.Catalog[i].ID))] = true
		}
	}
	for v := range c.Values() {
		if strings.HasPrefix(v.Key, "refaudit.") && !known[strings.ToLower(v.Key)] {
			all = append(all, inForce{key: v.Key, value: v, wrong: "there is no such setting"})
		}
	}
	return all
}
