package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
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
