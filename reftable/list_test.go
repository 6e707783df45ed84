package reftable

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
)

func TestParseList(t *testing.T) {
	const a, b = "0x000000000001-0x000000000001-aaaaaaaa.ref", "0x000000000002-0x000000000003-bbbbbbbb.ref"
	for _, c := range []struct {
		name, text string
		names      []string
		problems   []string
	}{
		{"two tables", a + "\n" + b + "\n", []string{a, b}, nil},
		{"nothing", "", nil, nil},
		{"empty lines", "\n\n" + a + "\n\n", []string{a}, nil},
		{"no newline at the end", a + "\n" + b, []string{a, b}, []string{`2 43+42: last line "` + b + `" has no newline: git 2.55 sees no table at all`}},
		{"twice", a + "\n" + b + "\n" + a + "\n", []string{a, b}, []string{`3 86+43: "` + a + `" stands on line 1 already`}},
		{"outside", "../x\n" + a + "\n/etc/passwd\n..\n.\nb\\c\n", []string{a}, []string{
			`1 0+5: "../x" lies outside the folder of the tables`,
			`3 48+12: "/etc/passwd" lies outside the folder of the tables`,
			`4 60+3: ".." lies outside the folder of the tables`,
			`5 63+2: "." lies outside the folder of the tables`,
			`6 65+4: "b\\c" lies outside the folder of the tables`}},
		{"zeros", a + "\n\x00\x00\x00\n", []string{a}, []string{`2 43+4: "\x00\x00\x00" holds a NUL: git sees no table at all`}},
		{"a carriage return belongs to the name", a + "\r\n", []string{a + "\r"}, nil},
	} {
		names, problems := ParseList([]byte(c.text), "reftable/tables.list")
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%d %d+%d: %v", p.Pos.Line, p.Pos.Offset, p.Pos.Length, p.Err))
			if p.ID != finding.ReftableListBad || p.Pos.File != "reftable/tables.list" {
				t.Errorf("%s: %+v", c.name, p)
			}
		}
		if !slices.Equal(names, c.names) || !slices.Equal(got, c.problems) {
			t.Errorf("%s:\n%q\n%q\nwant\n%q\n%q", c.name, names, got, c.names, c.problems)
		}
		if text := AppendList(nil, c.names); c.problems == nil && !strings.Contains(c.name, "empty") && string(text) != c.text {
			t.Errorf("%s: written again %q", c.name, text)
		}
	}
}

func TestTableNames(t *testing.T) {
	for _, c := range []struct {
		name   string
		good   bool // for git's check
		parsed TableName
		ours   bool // as writers write them
	}{
		{"0x000000000001-0x00000000000a-e4d12d59.ref", true, TableName{Min: 1, Max: 10, Random: 0xe4d12d59}, true},
		{"000000000001-00000000000a-e4d12d59.ref", true, TableName{Min: 1, Max: 10, Random: 0xe4d12d59}, true},
		{"0x000000000001-0x000000000002-e4d12d59.log", true, TableName{Min: 1, Max: 2, Random: 0xe4d12d59, LogOnly: true}, true},
		{"0xffffffffffffffff-0xffffffffffffffff-ffffffff.ref", true, TableName{Min: 1<<64 - 1, Max: 1<<64 - 1, Random: 0xffffffff}, true},
		{"0x10000000000000000-0x1-1.ref", false, TableName{}, false},
		{"0x000000000001-0x000000000002-e4d12d59.abc", false, TableName{}, false},
		{"0x000000000001-0x000000000002-e4d12d59.ref.x", false, TableName{}, false},
		{"foo-bar-e4d12d59.ref", false, TableName{}, false},
		{"0x00000000zzzz-0x00000000zzzz-e4d12d59.ref", false, TableName{}, false},
		{"--.ref", true, TableName{}, false},
		{"- -.ref", false, TableName{}, false},
		{" +1--2-\t-0X3.ref", true, TableName{}, false},
		{"0x-1-2.ref", false, TableName{}, false},
		{"1-2-.ref", true, TableName{}, false},
		{"1-2.ref", false, TableName{}, false},
		{"1-2-3-4.ref", false, TableName{}, false},
		{"", false, TableName{}, false},
	} {
		if got := GoodTableName(c.name); got != c.good {
			t.Errorf("%q: good %v, want %v", c.name, got, c.good)
		}
		got, err := ParseTableName(c.name)
		if got != c.parsed || (err == nil) != c.ours {
			t.Errorf("%q: %+v %v, want %+v", c.name, got, err, c.parsed)
		}
		if c.ours && strings.HasPrefix(c.name, "0x0") && !got.LogOnly && FormatTableName(got.Min, got.Max, uint32(got.Random)) != c.name {
			t.Errorf("%q: written again %q", c.name, FormatTableName(got.Min, got.Max, uint32(got.Random)))
		}
	}
}

func FuzzTablesList(f *testing.F) {
	f.Add([]byte("0x000000000001-0x000000000001-aaaaaaaa.ref\n0x000000000002-0x000000000003-bbbbbbbb.ref\n"))
	f.Add([]byte("a\n\na\n../x\n\x00\nlast"))
	f.Fuzz(func(t *testing.T, text []byte) {
		names, problems := ParseList(text, "l")
		for _, n := range names {
			if n == "" || strings.ContainsAny(n, "/\n\x00") || n == ".." {
				t.Fatalf("name %q", n)
			}
			GoodTableName(n)
			if p, err := ParseTableName(n); err == nil && p.Min <= p.Max && !GoodTableName(n) {
				t.Fatalf("%q is what writers write, and git refuses it", n)
			}
		}
		for _, p := range problems {
			if end := p.Pos.Offset + p.Pos.Length; p.Pos.Offset < 0 || end > int64(len(text)) {
				t.Fatalf("a problem at %d+%d of %d bytes", p.Pos.Offset, p.Pos.Length, len(text))
			}
		}
		again, more := ParseList(AppendList(nil, names), "l")
		if !slices.Equal(again, names) || more != nil {
			t.Fatalf("%q, written and read again %q %v", names, again, more)
		}
	})
}
