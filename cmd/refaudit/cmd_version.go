package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"refaudit/reports"
)

func versionCommand(e env) *cli.Command {
	var asJSON bool
	return &cli.Command{
		Name:   "version",
		Usage:  "print the version",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Destination: &asJSON, Usage: "as JSON, with what it was built from"}},
		Action: func(c *cli.Context) error { return runVersion(e, asJSON) },
	}
}

// build is what a program knows of its own making.
type build struct {
	Schema   string `json:"schema"`
	Type     string `json:"type"`
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit
	Modified bool   `json:"modified"`       // something was changed since
	Go       string `json:"go"`
	System   string `json:"system"`
}

func runVersion(e env, asJSON bool) error {
	b := build{Schema: reports.Schema, Type: "version", Version: versionString(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if !asJSON {
		_, err := fmt.Fprintf(e.stdout, "refaudit version %s\n", b.Version)
		return err
	}
	return json.NewEncoder(e.stdout).Encode(b)
}
