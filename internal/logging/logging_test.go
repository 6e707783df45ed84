package logging

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func at() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC) }

func TestAnEntryIsALine(t *testing.T) {
	var b strings.Builder
	l := New(&b, Warn, at)
	l.Debug("not asked for")
	l.Warn("a .keep file is left", String("repo", "/srv/a b.git"), Strings("args", []string{"git", "x\ny"}), Error(errors.New("no space")))
	want := "2026-05-04T03:02:01Z\twarn\ta .keep file is left\t" +
		`{"repo": "/srv/a b.git", "args": ["git", "x\ny"], "error": "no space"}` + "\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestLevels(t *testing.T) {
	for word, want := range map[string]string{"debug": "debug warn", "info": "warn", "warn": "warn", "error": ""} {
		level, err := ParseLevel(word)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		l := New(&b, level, at)
		l.Debug("x")
		l.Warn("x")
		var got []string
		for line := range strings.Lines(b.String()) {
			got = append(got, strings.Split(line, "\t")[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	if _, err := ParseLevel("loud"); err == nil {
		t.Error("loud is a level")
	}
	Discard().Warn("goes nowhere")
}
