package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"refaudit/internal/gittest"
)

func TestFlagsAreUnderstoodAfterThePath(t *testing.T) {
	commands := []*cli.Command{
		{Name: "scan", Flags: []cli.Flag{&cli.StringFlag{Name: "format"}, &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}}}},
		{Name: "hook", Subcommands: []*cli.Command{{Name: "install", Flags: []cli.Flag{&cli.StringFlag{Name: "mode"}}}}},
	}
	for in, want := range map[string]string{
		"refaudit":                              "refaudit",
		"refaudit scan":                         "refaudit scan",
		"refaudit scan a":                       "refaudit scan -- a",
		"refaudit scan a --format jsonl":        "refaudit scan --format jsonl -- a",
		"refaudit scan a --format=jsonl b":      "refaudit scan --format=jsonl -- a b",
		"refaudit scan a -q b":                  "refaudit scan -q -- a b",
		"refaudit scan --format -x a":           "refaudit scan --format -x -- a",
		"refaudit scan a -- -q":                 "refaudit scan -- a -q",
		"refaudit scan -- a -q":                 "refaudit scan -- a -q",
		"refaudit scan a scan":                  "refaudit scan -- a scan",
		"refaudit hook install d --mode x":      "refaudit hook install --mode x -- d",
		"refaudit scan -":                       "refaudit scan -- -",
		"refaudit scan --format":                "refaudit scan --format",
		"refaudit scan a --format":              "refaudit scan --format",
		"refaudit scan a -q --format":           "refaudit scan -q --format",
		"refaudit hook install d --mode":        "refaudit hook install --mode",
		"refaudit scan a --format --":           "refaudit scan --format -- -- a",
		"refaudit scan a --help":                "refaudit scan --help",
		"refaudit scan -h a":                    "refaudit scan -h",
		"refaudit scan --format -h a":           "refaudit scan --format -h -- a",
		"refaudit scan -- a -h":                 "refaudit scan -- a -h",
		"refaudit --help a":                     "refaudit --help -- a",
		"refaudit scan a --no-such-flag":        "refaudit scan --no-such-flag -- a",
		"refaudit nonsense a":                   "refaudit -- nonsense a",
		"refaudit scan --quiet a --format git ": "refaudit scan --quiet --format git -- a",
	} {
		if got := permute(strings.Fields(in), commands, nil); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s:\n got %s\nwant %s", in, strings.Join(got, " "), want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		findings   int64
		incomplete bool
		want       int
	}{{0, false, 0}, {3, false, 1}, {0, true, 3}, {1, true, 7}} {
		if got := verdict(c.findings, c.incomplete); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// eachCommand gives every command that people call, those below others too, and its words.
func eachCommand(list []*cli.Command, above []string, fn func(c *cli.Command, words []string)) {
	for _, c := range list {
		if c.Hidden {
			continue
		}
		words := append(slices.Clone(above), c.Name)
		fn(c, words)
		eachCommand(c.Subcommands, words, fn)
	}
}

// A value that is missing after a PATH is missing as it is before one: nothing is done.
func TestAMissingValueIsNeverTakenFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	eachCommand(newApp(env{}, "").Commands, nil, func(c *cli.Command, words []string) {
		for name := range valueFlags(c.Flags) {
			dashes := "--"
			if len(name) == 1 {
				dashes = "-"
			}
			got := command(t, nil, nil, append(slices.Clone(words), "no/such", dashes+name)...)
			if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, "flag needs an argument: -"+name) {
				t.Errorf("%s %s%s: exit %d: %s%s", strings.Join(words, " "), dashes, name, got.code, got.out, got.err)
			}
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("wrote %v, error %v", left, err)
	}
}

func TestHelpIsOfTheCommandWhateverStandsBesideIt(t *testing.T) {
	eachCommand(newApp(env{}, "").Commands, nil, func(c *cli.Command, words []string) {
		own := command(t, nil, nil, append(slices.Clone(words), "--help")...)
		if own.code != 0 || !strings.Contains(own.out, c.Usage) {
			t.Errorf("%v: exit %d: %s%s", words, own.code, own.out, own.err)
		}
		for _, more := range [][]string{{"g.git", "--help"}, {"--help", "g.git"}, {"g.git", "-h"}, {"a", "-h", "b"}} {
			if got := command(t, nil, nil, append(slices.Clone(words), more...)...); got != own {
				t.Errorf("%v %v: exit %d: %s%s", words, more, got.code, got.out, got.err)
			}
		}
	})
}

func TestUsageErrorsHaveAHintOfTheirKind(t *testing.T) {
	for args, want := range map[string]string{
		"scan --jobs=x a":              "it takes a whole number, without a unit (see refaudit scan --help)",
		"size -j 99999999999999999999": "it takes a whole number, without a unit (see refaudit size --help)",
		"scan --quiet=maybe":           "it takes no value (see refaudit scan --help)",
		"fix a -q=maybe":               "it takes no value (see refaudit fix --help)",
		"scan --max-duration=90":       "a time takes a unit, such as 90s, 10m or 24h (see refaudit scan --help)",
		"undo --lock-timeout=x":        "a time takes a unit, such as 90s, 10m or 24h (see refaudit undo --help)",
		"hook install --nonsense":      "flag provided but not defined: -nonsense (see refaudit hook install --help)",
		"dump --format":                "flag needs an argument: -format (see refaudit dump --help)",
		"--version=maybe":              "it takes no value (see refaudit --help)",
		"--nonsense":                   "flag provided but not defined: -nonsense (see refaudit --help)",
	} {
		got := command(t, nil, nil, strings.Fields(args)...)
		if got.code != exitUsage || got.out != "" || !strings.HasSuffix(got.err, want+"\n") || strings.Count(got.err, "takes") > 1 {
			t.Errorf("%s: exit %d: %s%s", args, got.code, got.out, got.err)
		}
	}
}

// An empty argument is a variable of a script that is not set. It does not stand for the folder we are in, and what stands beside
// it is left alone too.
func TestAnEmptyArgumentIsAUsageError(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	gittest.Unchanged(t, r.Path, func() {
		eachCommand(newApp(env{}, "").Commands, nil, func(c *cli.Command, words []string) {
			if len(c.Subcommands) > 0 {
				return
			}
			for _, more := range [][]string{{""}, {r.Path, ""}, {"", r.Path}, {"--", ""}} {
				if words[0] == "fix" {
					more = append([]string{"--yes"}, more...)
				}
				got := commandIn(t.Context(), r.Path, nil, map[string]string{"XDG_STATE_HOME": t.TempDir()}, append(slices.Clone(words), more...)...)
				if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, "empty") {
					t.Errorf("%v %q: exit %d: %s%s", words, more, got.code, got.out, got.err)
				}
				if strings.Contains(c.ArgsUsage, "PATH") && got.err != "refaudit: an empty PATH names no repository\n" {
					t.Errorf("%v %q: %s", words, more, got.err)
				}
			}
		})
	})
}
