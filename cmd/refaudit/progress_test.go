package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgressSaysHowLongItTakes(t *testing.T) {
	p := &progress{}
	p.refs.Store(1_234_567)
	p.done.Store(3)
	p.total.Store(12)
	if got, want := p.line(2*time.Second), "3 repositories, 1,234,567 refs, 617,283 refs/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.whole.Store(true)
	if got, want := p.line(2*time.Second), "3 of 12 repositories, 1,234,567 refs, 617,283 refs/s, about 6s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProgressIsDrawnOnATerminalOnly(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var b bytes.Buffer
		e := env{stderr: &b, errTerminal: terminal, getenv: func(string) (string, bool) { return "0", true }}
		p := startProgress(e, "auto", nil)
		time.Sleep(50 * time.Millisecond)
		p.end()
		if drawn := strings.Contains(b.String(), "refs/s"); drawn != terminal {
			t.Errorf("terminal %v: %q", terminal, b.String())
		}
		if terminal && !strings.HasSuffix(b.String(), "\r\x1b[K") {
			t.Errorf("the line is left: %q", b.String())
		}
	}
	if checkProgress("loud") == nil {
		t.Error("--progress=loud was taken")
	}
}
