package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/reftable"
)

// git commit ca93c27328 and jgit issue 130: a stack that can't be loaded looks like a repository without refs, exit code
// 0, and `gc --prune=now` deletes every object. Here it is always a finding and never an empty answer.
func TestC26AnUnreadableTableLooksLikeNoRefs(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		name := "reftable/" + filepath.Base(l.Tables()[0])
		list := string(l.ReadFile("reftable/tables.list"))
		table := l.ReadFile(name)
		header, footer := 24, 68
		if l.Format == oid.SHA256 {
			header, footer = 28, 72
		}
		restore := func() {
			l.WriteFile(name, table)
			l.WriteFile("reftable/tables.list", []byte(list))
		}
		unreadable := func(what, id string) {
			t.Helper()
			scan := l.run("scan")
			told := ""
			for _, f := range scan.of(t, "finding") {
				if f["severity"] == "error" {
					told += fmt.Sprintf("%v: %v (%v)\n", f["id"], f["message"], f["file"])
				}
			}
			if scan.code != 7 || !strings.Contains(told, id) || !strings.Contains(told, "gc") || !strings.Contains(told, "reftable/") || scan.of(t, "summary")[0]["refs"] != 0.0 {
				t.Errorf("%s: exit %d, no %s, or nothing said of gc: %s", what, scan.code, id, told)
			}
			quick := l.run("scan", "--level=quick")
			if quick.code != 7 {
				t.Errorf("%s: quick gives %d", what, quick.code)
			}
		}
		// What a person does next.
		next := func(what string) {
			t.Helper()
			size := l.run("size")
			if u := size.of(t, "usage"); size.code != 7 || len(u) != 1 || u[0]["reachable"] != nil || u[0]["own"] != nil {
				t.Errorf("%s: size gives %d, %v", what, size.code, u)
			}
			l.refuses(7)
			if dump := l.run("dump"); dump.code != 0 && dump.code != 3 {
				t.Errorf("%s: dump gives %d: %s", what, dump.code, dump.err)
			}
		}

		os.Remove(l.File(name))
		unreadable("a table is missing", "reftableMissingTable")
		next("a table is missing")
		restore()

		for n := 0; n < len(table); n += 1 + len(table)/41 {
			l.WriteFile(name, table[:n])
			unreadable(fmt.Sprint("cut at ", n), "reftable")
		}
		next("cut near its end")
		for _, at := range []int{0, 3, 4, 5, 8, 15, 16, 23, header - 1, len(table) - footer, len(table) - footer + 4, len(table) - footer + 9, len(table) - 20, len(table) - 4, len(table) - 1} {
			bad := slices.Clone(table)
			bad[at] ^= 0x01
			l.WriteFile(name, bad)
			unreadable(fmt.Sprint("flipped at ", at), "reftable")
		}
		next("flipped in its footer")
		restore()

		for what, text := range map[string]string{
			"empty": "", "blank": "\n\n", "a missing name": list + "0x000000000009-0x000000000009-deadbeef.ref\n", "zeros": strings.Repeat("\x00", len(list)),
			"no newline and cut": list[:20], "a name outside": "../HEAD\n", "a page": "<html>\n", "twice": list + list,
		} {
			l.WriteFile("reftable/tables.list", []byte(text))
			unreadable("tables.list is "+what, "reftable")
		}
		next("tables.list names a table twice")
		os.Remove(l.File("reftable/tables.list"))
		unreadable("tables.list is gone", "reftable")
		next("tables.list is gone")
		restore()
		os.Remove(l.File(name))
		os.Mkdir(l.File(name), 0o755)
		unreadable("a table is a folder", "reftable")
		os.Remove(l.File(name))
		restore()
		l.sees(0)

		// A line of the list is gone, or has moved: what is served is whole, and another.
		l.Git("tag", "-f", "-a", "-m", "anew", "v1", l.B)
		two := strings.SplitAfter(string(l.ReadFile("reftable/tables.list")), "\n")
		if len(two) != 3 {
			t.Fatalf("%q", two)
		}
		l.sees(0)
		l.WriteFile("reftable/tables.list", []byte(two[1]+two[0]))
		l.sees(1, "reftableUpdateIndex", "reftableOrder refs/tags/v1")
		l.refuses(1)
		l.WriteFile("reftable/tables.list", []byte(two[1]))
		if out := l.run("scan"); out.code != 3 || !strings.Contains(out.out, "leads to no HEAD") {
			t.Errorf("the oldest table is not listed: %d %s", out.code, out.out)
		}
		l.refuses(3)
		old := time.Now().Add(-time.Hour)
		for _, line := range two[:2] {
			os.Chtimes(l.File("reftable/"+strings.TrimSpace(line)), old, old)
		}
		l.WriteFile("reftable/tables.list", []byte(two[0])) // as after a crash
		l.seesAt([]string{"--level=deep"}, 0, "reftableOrphanTable")
	})
}

// record finds a record of a table by the name of its ref.
func (l *lab) record(table, ref string) *reftable.Ref {
	l.t.Helper()
	open, err := reftable.OpenBytes(l.ReadFile(table), table, l.Format)
	if err != nil {
		l.t.Fatal(err)
	}
	it := open.Iter()
	for it.Next() {
		if r := *it.Ref(); string(r.Name) == ref {
			r.Value, r.Peel = bytes.Clone(r.Value), bytes.Clone(r.Peel)
			return &r
		}
	}
	l.t.Fatalf("%s is not in %s", ref, table)
	return nil
}

// git commits 0d77a81854, ec426765df, 43a06696fb and ed103ab7f8: blocks that lie about their length, restarts and types
// crash every command of git 2.55; of a flipped bit, a disorder or a bad name it says nothing.
func TestC28BlocksThatLie(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		recs := l.records()
		bad := slices.Clone(recs)
		bad[len(bad)-1].peel = l.A // so that there is something to mend
		name := l.putTable(bad)
		sound := l.ReadFile(name)
		main, v2 := l.record(name, "refs/heads/main"), l.record(name, "refs/tags/v2")
		header := int64(24)
		if l.Format == oid.SHA256 {
			header = 28
		}
		length := int64(sound[header+1])<<16 | int64(sound[header+2])<<8 | int64(sound[header+3]) // of the first block, the header counted
		put := func(at int64, b ...byte) { copy(sound[at:], b) }
		for _, c := range []struct {
			what string
			id   string
			harm func()
		}{
			{"restarts: FFFF", "reftableRestart", func() { put(length-2, 0xff, 0xff) }},
			{"a restart: FFFFFF", "reftableRestart", func() { put(length-5, 0xff, 0xff, 0xff) }},
			{"a restart points into a record", "reftableRestart", func() { sound[length-3]++ }},
			{"length: FFFFFF", "reftable", func() { put(header+1, 0xff, 0xff, 0xff) }},
			{"length: 0", "reftable", func() { put(header+1, 0, 0, 0) }},
			{"length: too short", "reftable", func() { put(header+1, 0, 0, byte(header+4+3)) }},
			{"type of the block", "reftable", func() { put(header, 'x') }},
			{"type of a value: 5", "reftableRecord", func() { sound[main.Offset+1] = sound[main.Offset+1]&^7 | 5 }},
			{"type of a value: 7", "reftableRecord", func() { sound[main.Offset+1] |= 7 }},
			{"length of a name", "reftable", func() { put(main.Offset+1, 0xff, 0xff, 0x7f) }},
			{"length of what names share", "reftable", func() { put(v2.Offset, 0x7f) }},
			{"names out of order", "reftableBlockOrder", func() { sound[v2.Offset+2] = '0' }},
			{"a varint without end", "reftable", func() { put(main.Offset, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) }},
		} {
			t.Run(c.what, func(t *testing.T) {
				l := &lab{l.Repo, t, l.vars}
				before := slices.Clone(sound)
				defer func() { sound = before }()
				c.harm()
				l.WriteFile(name, sound)
				scan := l.run("scan")
				placed := false
				for _, f := range scan.of(t, "finding") {
					if strings.HasPrefix(fmt.Sprint(f["id"]), c.id) && f["offset"] != nil && f["file"] == name {
						placed = true
					}
				}
				if scan.code != 1 && scan.code != 7 || !placed {
					t.Errorf("%d %s", scan.code, scan.out)
				}
				dump := l.run("dump")
				if dump.code != 0 || !strings.Contains(dump.out, "refs/heads/main") && !strings.Contains(dump.out, "damage") {
					t.Errorf("dump: %d %s", dump.code, dump.out)
				}
				l.refuses(scan.code)
			})
		}
		for what, c := range map[string]struct {
			recs []rec
			rows []string
		}{
			"a bad name":     {append(slices.Clone(recs), rec{"refs/heads/x..lock", l.A, ""}), []string{"badRefName refs/heads/x..lock"}},
			"a flipped bit":  {append(slices.Clone(recs), rec{"refs/heads/flip", flipHex(l.A), ""}), []string{"refTargetMissing refs/heads/flip"}},
			"zeros":          {append(slices.Clone(recs), rec{"refs/heads/zero", l.zero(), ""}), []string{"badRefOid refs/heads/zero"}},
			"a flipped peel": {append(slices.Clone(recs), rec{"refs/heads-not/v1", l.V1, flipHex(l.A)}), []string{"peelMismatch refs/heads-not/v1"}},
		} {
			t.Run(what, func(t *testing.T) {
				l := &lab{l.Repo, t, l.vars}
				l.putTable(c.recs)
				l.sees(1, c.rows...)
			})
		}
		l.putTable(recs)
		l.seesAt([]string{"--level=deep"}, 0)

		// Others write tables without padding, and with blocks of other sizes.
		for _, size := range []int{0, 256, 1 << 16} {
			var b bytes.Buffer
			w, err := reftable.NewWriter(&b, reftable.Options{Format: l.Format, Min: 1, Max: 1, Unpadded: size == 0, BlockSize: size})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.writeRecords(w, recs); err != nil {
				t.Fatal(err)
			}
			l.WriteFile(name, b.Bytes())
			l.seesAt([]string{"--level=deep"}, 0)
			l.holds(recs...)
		}
	})
}

// git commit 7ec85185b1: strict peeling was wired up for some writers, and the one that rewrites reflogs is not among
// them. A repository that was mended once need not stay so.
func TestC29GitWritesTheBadPeelBack(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		l.Git("config", "core.logAllRefUpdates", "always")
		bad, _ := l.FalseTag("bad")
		other := l.WriteTag(l.Blob, "tree", "other")
		spoil := func() {
			l.Git("update-ref", "refs/tags/bad", other)
			l.Git("update-ref", "refs/tags/bad", bad)
			l.sees(1, "tagTypeMismatch refs/tags/bad")
			l.Git("reflog", "delete", "--updateref", "refs/tags/bad@{1}")
		}
		for range 2 {
			spoil()
			if l.stored()["refs/tags/bad"].peel == "" {
				t.Skipf("git %s does not write it back", l.Program.Version)
			}
			l.sees(1, "peelOfCorruptTag refs/tags/bad", "tagTypeMismatch refs/tags/bad")
			logs := l.logs()
			l.fixes(1)
			if got := l.stored()["refs/tags/bad"]; got.peel != "" || got.id != bad {
				t.Errorf("%v", got)
			}
			if now := l.logs(); !slices.Equal(logs, now) || len(logs) < 2 {
				t.Errorf("log records were\n%v\nand are\n%v", logs, now)
			}
			l.sees(1, "tagTypeMismatch refs/tags/bad")
			l.seesAt([]string{"--level=deep"}, 1, "tagTypeMismatch refs/tags/bad")
		}
		spoil()
		logs := l.logs()
		l.fixes(1, "--compact")
		if now := l.logs(); !slices.Equal(logs, now) {
			t.Errorf("--compact: log records were\n%v\nand are\n%v", logs, now)
		}
		l.sees(1, "tagTypeMismatch refs/tags/bad")
	})
}

// logs are all log records of the stack, whatever table they are in.
func (l *lab) logs() (rows []string) {
	l.t.Helper()
	for _, path := range l.Tables() {
		data, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		table, err := reftable.OpenBytes(data, path, l.Format)
		if err != nil {
			l.t.Fatal(err)
		}
		err = table.Logs(func(g *reftable.Log) error {
			rows = append(rows, fmt.Sprintf("%s %d %d %x", g.Name, g.UpdateIndex, g.Type, g.Value))
			return nil
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	slices.Sort(rows)
	return rows
}

// jgit issue 289: a root index of several blocks, of which a reader looked at the first. A scan and a look-up must
// see the same refs.
func TestC30ARootIndexOfSeveralBlocks(t *testing.T) {
	formats := tableFormats
	if testing.Short() {
		formats = formats[:1]
	}
	inFormats(t, formats, func(t *testing.T, l *lab) {
		var in strings.Builder
		var names []string
		for i := range 1800 {
			hex := l.Format.Object("blob", []byte(fmt.Sprint(i))).String()
			name := "refs/notes/" + strings.Repeat(hex, 4)[:128]
			names = append(names, name)
			fmt.Fprintf(&in, "create %s %s\n", name, l.V1) // tags, so that each has a peel
		}
		slices.Sort(names)
		l.GitIn(in.String(), "update-ref", "--stdin")
		l.Git("pack-refs", "--all")
		table, err := reftable.OpenBytes(must1(t)(os.ReadFile(l.Tables()[0])), "table", l.Format)
		if err != nil || len(l.Tables()) != 1 || table.RefIndex == 0 {
			t.Fatalf("%v, %d tables, index at %d", err, len(l.Tables()), table.RefIndex)
		}
		if blocks := strings.Count(string(must1(t)(os.ReadFile(l.Tables()[0]))[table.RefIndex:table.Obj]), "i\x00"); blocks < 2 {
			t.Fatalf("the root index has %d blocks", blocks)
		}
		for _, name := range []string{names[0], names[1], names[899], names[1798], names[1799]} {
			if it := table.Seek([]byte(name)); !it.Next() || string(it.Ref().Name) != name {
				t.Errorf("a look-up does not find %s: %v", name, it.Err())
			}
		}
		found := l.run("scan", "--level=deep")
		if s := found.of(t, "summary")[0]; s["refs"] != 1808.0 || s["peels_checked"] != 1806.0 {
			t.Errorf("%d %v", found.code, s)
		}
		if found.code != 0 || len(found.of(t, "finding")) != 0 {
			t.Fatal(found.out)
		}
		// The last, the first and the middle one: found and mended.
		data := must1(t)(os.ReadFile(l.Tables()[0]))
		rel, _ := filepath.Rel(l.Path, l.Tables()[0])
		for _, name := range []string{names[0], names[899], names[1799]} {
			r := l.record(rel, name)
			at := bytes.Index(data[r.Offset:r.Offset+r.Length], l.raw(l.A))
			copy(data[r.Offset+int64(at):], l.raw(l.B))
		}
		l.WriteFile(rel, data)
		ids := l.run("scan").of(t, "summary")[0]["ids"].(map[string]any)
		if ids["peelMismatch"] != 3.0 {
			t.Errorf("%v", ids)
		}
		l.fixes(0)
		for _, name := range []string{names[0], names[899], names[1799]} {
			if got := l.stored()[name]; got.peel != l.A {
				t.Errorf("%v", got)
			}
			if got := l.Git("rev-parse", name); got != l.V1 {
				t.Errorf("git reads %s", got)
			}
		}
	})
}

func must1(t testing.TB) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// git commit 9341740bea: the stacks of linked worktrees were never opened by a check. Each belongs to the audit, and a
// broken one stops no other.
func TestC32StacksOfWorktrees(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		for _, wt := range []string{"wt1", "wt2"} {
			tree := filepath.Join(filepath.Dir(l.Path), wt)
			l.Git("worktree", "add", "-q", "--detach", tree, "refs/heads/main")
			if res := l.Program.Run(t, tree, nil, "", "update-ref", "refs/worktree/t", l.V1); res.Code != 0 {
				t.Fatal(res)
			}
		}
		tables := func(wt string) []string {
			paths, _ := filepath.Glob(l.File("worktrees/" + wt + "/reftable/*.ref"))
			return paths
		}
		for _, wt := range []string{"wt1", "wt2"} {
			hit := false
			for _, path := range tables(wt) {
				data := must1(t)(os.ReadFile(path))
				if at := bytes.Index(data, append(l.raw(l.V1), l.raw(l.A)...)); at >= 0 {
					copy(data[at+l.Format.Size():], l.raw(l.B))
					os.Chmod(path, 0o644)
					os.WriteFile(path, data, 0o644)
					hit = true
				}
			}
			if !hit {
				t.Fatalf("no peel in the stack of %s", wt)
			}
		}
		one, two := "peelMismatch worktrees/wt1/refs/worktree/t", "peelMismatch worktrees/wt2/refs/worktree/t"
		found := l.sees(1, one, two)
		if file := fmt.Sprint(found[one]["file"]); !strings.HasPrefix(file, "worktrees/wt1/reftable/") {
			t.Errorf("%v", found[one])
		}
		// A lock on one stack holds up no other.
		l.WriteFile("worktrees/wt1/reftable/tables.list.lock", nil)
		l.fixes(exitLocked, "--lock-timeout=10ms")
		os.Remove(l.File("worktrees/wt1/reftable/tables.list.lock"))
		l.sees(1, one)
		l.fixes(0)
		l.sees(0)
		for _, wt := range []string{"wt1", "wt2"} {
			if res := l.Program.Run(t, filepath.Join(filepath.Dir(l.Path), wt), nil, "", "show-ref", "-d", "refs/worktree/t"); !strings.Contains(res.Stdout, l.A+" refs/worktree/t^{}") {
				t.Errorf("git serves %v", res)
			}
		}

		// One broken stack, and a wrong peel in another.
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		l.putTable(bad)
		for _, path := range tables("wt1") {
			os.Truncate(path, 30)
		}
		out := l.run("scan")
		if out.code != 7 || !strings.Contains(out.out, "worktrees/wt1/reftable/") || strings.Count(out.out, `"peelMismatch","severity":"error","ref":"refs/tags/v2"`) != 1 {
			t.Errorf("cut: %d %s", out.code, out.out)
		}
		for _, path := range tables("wt1") {
			os.Remove(path)
		}
		out = l.run("scan")
		if out.code != 7 || !strings.Contains(out.out, "reftableMissingTable") || !strings.Contains(out.out, `"ref":"refs/tags/v2"`) {
			t.Errorf("gone: %d %s", out.code, out.out)
		}
		if size := l.run("size"); size.code != 7 || size.of(t, "usage")[0]["reachable"] != nil {
			t.Errorf("size: %d %s", size.code, size.out)
		}
		l.fixes(7) // mends the main stack
		if got := l.stored()["refs/tags/v2"]; got.peel != l.B {
			t.Errorf("%v", got)
		}
	})
	// Of the files format, a worktree without a refs folder is sound.
	inFormats(t, filesFormats[:1], func(t *testing.T, l *lab) {
		l.Git("worktree", "add", "-q", "--detach", filepath.Join(filepath.Dir(l.Path), "wt"), "refs/heads/main")
		os.RemoveAll(l.File("worktrees/wt/refs"))
		l.seesAt([]string{"--level=deep"}, 0)
	})
}

// git commit ed1ad6b44d and jgit issue 136: between the reading of the stack and its lock another adds tables, and
// compacts away those that were read.
func TestC33TheStackChangesBetweenPlanAndLock(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		spoil := func() {
			l.putTable(bad)
		}
		for what, meanwhile := range map[string]func(){
			"adds": func() {
				l.Git("update-ref", "refs/heads/n", l.A)
				l.Git("update-ref", "refs/heads/n", l.B)
			},
			"compacts": func() {
				l.Git("update-ref", "refs/heads/n", l.B)
				l.Git("pack-refs", "--all")
			},
			"fills": func() {
				for i := range 5 {
					l.Git("update-ref", fmt.Sprintf("refs/heads/n%d", i), l.A)
				}
			},
		} {
			t.Run(what, func(t *testing.T) {
				l := &lab{l.Repo, t, l.vars}
				spoil()
				var between []string
				res := l.fixWhile("reftable/tables.list.lock", func() { meanwhile(); between = l.Tables() })
				after := l.Tables()
				if len(after) != len(between)+1 || !slices.Equal(after[:len(between)], between) || len(res.Done) != 1 || len(res.Left) != 0 {
					t.Errorf("tables\n%v, then\n%v: %+v", between, after, res)
				}
				got := l.stored()
				if got["refs/tags/v2"].peel != l.B || len(got) <= len(bad) {
					t.Errorf("%v", got)
				}
				l.gitServes()
				l.sees(0)
			})
		}
		spoil()
		res := l.fixWhile("reftable/tables.list.lock", func() { l.Git("update-ref", "-d", "refs/tags/v2") })
		if _, there := l.stored()["refs/tags/v2"]; there || len(res.Done) != 0 {
			t.Errorf("what was to be mended was deleted: %v, %+v", l.stored(), res)
		}
	})
}

// git commits f234df07f6 and bc39b6a796: a stale lock of one table stops its compaction for ever; one of the list
// stops every update.
func TestC34LocksOfTablesAndOfTheList(t *testing.T) {
	inFormats(t, tableFormats, func(t *testing.T, l *lab) {
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		table := l.putTable(bad)
		old := time.Now().Add(-5 * time.Hour)
		lock := func(name string) string {
			l.WriteFile(name+".lock", nil)
			os.Chtimes(l.File(name+".lock"), old, old)
			return name + ".lock"
		}
		of := lock(table)
		found := l.seesAt([]string{"--level=deep"}, 1, "peelMismatch refs/tags/v2", "staleLock")
		l.says(found["staleLock"], "5 hours")
		before := l.ReadFile(table)
		l.fixes(exitLocked, "--compact", "--lock-timeout=10ms")
		if names, _ := filepath.Glob(l.File("reftable/*")); len(names) != 3 || !bytes.Equal(l.ReadFile(table), before) {
			t.Errorf("beside the lock of a table: %v", names)
		}
		l.fixes(0) // a table more needs no lock of the others
		l.holds(l.records()...)
		if _, err := os.Stat(l.File(of)); err != nil {
			t.Errorf("the lock of the table: %v", err)
		}
		os.Remove(l.File(of))

		l.putTable(bad)
		of = lock("reftable/tables.list")
		found = l.seesAt([]string{"--level=deep"}, 1, "peelMismatch refs/tags/v2", "staleLock")
		l.says(found["staleLock"], "5 hours")
		l.Git("config", "reftable.lockTimeout", "120")
		begin := time.Now()
		l.refuses(exitLocked)
		if took := time.Since(begin); took < 120*time.Millisecond {
			t.Errorf("reftable.lockTimeout is not honoured: %v", took)
		}
		if _, err := os.Stat(l.File(of)); err != nil {
			t.Errorf("the lock of the list: %v", err)
		}
	})
}

// git commits 01dc84594e and 53592d68e8: the refs lie elsewhere, and what looks like the store is a stub. Who guesses
// the format sees nothing.
func TestC37TheRefsAreNotWhereYouLook(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		l.Use(gittest.Newest)
		recs := l.records()
		bad := slices.Clone(recs)
		bad[len(bad)-1].peel = l.A
		l.put(bad...)
		store := filepath.Join(filepath.Dir(l.Path), "store")
		where := func(name string) string { return filepath.Join(store, name) }
		move := func(names ...string) {
			t.Helper()
			for _, name := range names {
				os.MkdirAll(filepath.Dir(where(name)), 0o755)
				if err := os.Rename(l.File(name), where(name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if l.RefFormat == gittest.Files {
			move("packed-refs", "HEAD", "refs")
		} else {
			move("reftable", "HEAD", "refs")
		}
		l.WriteFile("HEAD", []byte("ref: refs/heads/.invalid\n"))
		l.WriteFile("refs/heads", []byte("this repository keeps its refs elsewhere\n"))
		uri := l.RefFormat + "://" + store
		l.Git("config", "core.repositoryFormatVersion", "1")
		config := func(value string) { l.Git("config", "extensions.refStorage", value) }

		config(uri)
		if refs := l.Git("for-each-ref"); strings.Count(refs, "\n")+1 != len(recs) {
			t.Fatalf("git reads %s", refs)
		}
		found := l.sees(1, "peelMismatch refs/tags/v2")
		if file := fmt.Sprint(found["peelMismatch refs/tags/v2"]["file"]); !strings.HasPrefix(file, store) {
			t.Errorf("%s", file)
		}
		if out := l.run("fix", "--yes"); out.code != 0 {
			t.Errorf("fix: %d %s%s", out.code, out.out, out.err)
		}
		l.sees(0)
		if got := served(t, l.Repo, l.Program); got["refs/tags/v2"].String() != l.B {
			t.Errorf("git serves %v", got)
		}

		// The word for it is lost: the stub that git leaves behind is no store.
		if l.Format == oid.SHA1 {
			l.Git("config", "--unset", "extensions.refStorage")
			if out := l.run("scan"); out.code != 7 || !strings.Contains(out.out, "kept elsewhere") {
				t.Errorf("refStorage is lost: %d %s", out.code, out.out)
			}
			if u := l.figures(7); u["reachable"] != nil {
				t.Errorf("%v", u)
			}
			config(uri)
		}

		// The environment wins.
		empty := t.TempDir()
		config(l.RefFormat + "://" + empty)
		if out := l.run("scan"); out.code == 0 && len(out.of(t, "notice"))+len(out.of(t, "finding")) == 0 {
			t.Errorf("a payload that leads to an empty folder is clean: %s", out.out)
		}
		vars := map[string]string{"GIT_REFERENCE_BACKEND": uri}
		if out := command(t, nil, vars, "scan", "--format=jsonl", l.Path); out.code != 0 || out.of(t, "summary")[0]["refs"] != float64(len(recs)) {
			t.Errorf("GIT_REFERENCE_BACKEND: %d %s", out.code, out.out)
		}
		for _, value := range []string{l.RefFormat + "://" + empty + "/nowhere", "sqlite:///db", "sqlite"} {
			l.WriteFile("config", bytes.ReplaceAll(l.ReadFile("config"), []byte(l.RefFormat+"://"+empty), []byte(value)))
			if out := l.run("scan"); out.code != 3 && out.code != 7 {
				t.Errorf("%s: %d %s", value, out.code, out.out)
			}
			if out := l.run("size"); out.code != 3 && out.code != 7 {
				t.Errorf("%s: size %d %s", value, out.code, out.out)
			}
			l.WriteFile("config", bytes.ReplaceAll(l.ReadFile("config"), []byte(value), []byte(l.RefFormat+"://"+empty)))
		}
	})
	// git commit fb99dded31: a submodule of another format than its parent.
	for _, refs := range []string{gittest.Files, gittest.Reftable} {
		l := newLab(t, gittest.Options{RefFormat: refs})
		other := gittest.Reftable
		if refs == other {
			other = gittest.Files
		}
		sub := newLab(t, gittest.Options{RefFormat: other})
		bad := sub.records()
		bad[len(bad)-1].peel = sub.A
		sub.put(bad...)
		copyTree(t, sub.Path, l.File("modules/sub"))
		os.MkdirAll(l.File("modules/sub/refs/heads"), 0o755)
		l.sees(0)
		sub.Path = l.File("modules/sub")
		sub.sees(1, "peelMismatch refs/tags/v2")
		sub.fixes(0)
		sub.gitServes()
	}
}

// git-ai PR 2096: sizes of SHA-1 that are built in. And a repository that has lost the word for its object format.
func TestC38TheOtherHash(t *testing.T) {
	inFormats(t, gittest.AllFormats, func(t *testing.T, l *lab) {
		l.seesAt([]string{"--level=deep"}, 0)
		bad := l.records()
		bad[len(bad)-1].peel = l.A
		l.put(bad...)
		l.sees(1, "peelMismatch refs/tags/v2")
		if l.Format == oid.SHA1 {
			l.Git("config", "core.repositoryFormatVersion", "1")
			l.Git("config", "extensions.objectFormat", "sha256")
		} else {
			l.Git("config", "--unset", "extensions.objectFormat")
		}
		out := l.run("scan")
		want := "reftableHashMismatch"
		if l.RefFormat == gittest.Files {
			want = "badPackedRefEntry"
		}
		if out.code != 7 || !strings.Contains(out.out, want) || strings.Contains(out.out, `"peelMismatch"`) {
			t.Errorf("the hash is another: %d %s", out.code, out.out)
		}
		for _, f := range out.of(t, "finding") { // no id of one hash is cut to, or filled up to, one of the other
			if f["oid"] != nil || f["cached"] != nil {
				t.Errorf("%v", f)
			}
		}
		l.refuses(7)
		if size := l.run("size"); size.code != 7 || size.of(t, "usage")[0]["reachable"] != nil {
			t.Errorf("size: %d %s", size.code, size.out)
		}
	})
}
