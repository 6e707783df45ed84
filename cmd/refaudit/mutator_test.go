package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"path"
	"strings"

	"refaudit/oid"
)

// kindOf is what sort of file of a repository this is, from its path below the folder that holds the repositories.
func kindOf(name string) string {
	base := path.Base(name)
	switch ext := path.Ext(base); {
	case strings.Contains(name, "/worktrees/") && (base == "HEAD" || base == "gitdir" || base == "commondir"):
		return "worktree's " + base
	case ext == ".ref":
		return "table"
	case ext == ".pack", ext == ".idx", ext == ".rev", ext == ".bitmap":
		if strings.HasPrefix(base, "multi-pack-index") {
			return "multi-pack " + ext
		}
		return ext
	case strings.Contains(name, "/objects/info/"):
		return base // alternates, commit-graph, packs
	case strings.Contains(name, "/objects/") && len(base) >= 38:
		return "loose object"
	case strings.Contains(name, "/refs/") || strings.HasSuffix(name, "/refs/heads"):
		return "loose ref"
	case strings.Contains(name, "/logs/"):
		return "reflog"
	}
	return base // HEAD, config, packed-refs, tables.list, multi-pack-index, shallow, refs of info/
}

// A mutator damages files, always in the same way for the same seed.
type mutator struct {
	*rand.Rand
	format oid.Format
}

// mutate gives a file another content; nil: the file goes. what says how.
func (m *mutator) mutate(data []byte, others [][]byte) (bad []byte, what string) {
	n := len(data)
	if n == 0 {
		return []byte("x"), "a byte in an empty file"
	}
	at := m.IntN(n)
	size := func(most int) int { return 1 + m.IntN(min(most, n-at)) }
	b := bytes.Clone(data)
	switch m.IntN(22) {
	case 0, 1, 2, 3:
		b[at] ^= 1 << m.IntN(8)
		return b, fmt.Sprintf("a bit at %d", at)
	case 4, 5:
		b[at] = byte(m.Uint32())
		return b, fmt.Sprintf("a byte at %d", at)
	case 6, 7:
		k := min([]int{1, 2, 3, 4, 8}[m.IntN(5)], n-at)
		copy(b[at:at+k], "\xff\xff\xff\xff\xff\xff\xff\xff")
		return b, fmt.Sprintf("%d times FF at %d", k, at)
	case 8:
		k := size(64)
		clear(b[at : at+k])
		return b, fmt.Sprintf("%d zeros at %d", k, at)
	case 9:
		from := at &^ 511
		to := min(n, from+512)
		clear(b[from:to])
		return b, fmt.Sprintf("a sector of zeros at %d", from)
	case 10, 11:
		return b[:at], fmt.Sprintf("cut at %d", at)
	case 12:
		k := size(48)
		return append(b[:at], b[at+k:]...), fmt.Sprintf("%d bytes at %d are gone", k, at)
	case 13:
		extra := make([]byte, 1+m.IntN(16))
		for i := range extra {
			extra[i] = byte(m.Uint32())
		}
		return append(b[:at:at], append(extra, data[at:]...)...), fmt.Sprintf("%d bytes more at %d", len(extra), at)
	case 14:
		k := size(200)
		return append(b[:at:at], append(bytes.Clone(data[at:at+k]), data[at:]...)...), fmt.Sprintf("%d bytes at %d twice", k, at)
	case 15:
		return []byte{}, "empty"
	case 16:
		return nil, "gone"
	case 17:
		return bytes.Clone(others[m.IntN(len(others))]), "another file's content"
	case 18, 19:
		return m.lines(b)
	case 20:
		return m.digit(b, at)
	}
	numbers := []uint32{0x7fffffff, 0x80000000, 0xfffffffe, 1, 0, uint32(n), uint32(n - 1), uint32(n + 1), 0xffff, 0x10000}
	at = min(at&^3, max(0, n-4))
	if n < 4 {
		return b[:0], "empty"
	}
	v := numbers[m.IntN(len(numbers))]
	binary.BigEndian.PutUint32(b[at:], v)
	return b, fmt.Sprintf("the number %d at %d", v, at)
}

// lines does to lines what tools and merges do.
func (m *mutator) lines(b []byte) ([]byte, string) {
	lines := bytes.SplitAfter(b, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	i, j := m.IntN(len(lines)), m.IntN(len(lines))
	switch m.IntN(4) {
	case 0:
		lines[i], lines[j] = lines[j], lines[i]
		return bytes.Join(lines, nil), fmt.Sprintf("lines %d and %d swapped", i, j)
	case 1:
		return bytes.Join(append(lines[:i:i], lines[i+1:]...), nil), fmt.Sprintf("line %d is gone", i)
	case 2:
		return bytes.Join(append(lines[:i+1:i+1], append([][]byte{lines[j]}, lines[i+1:]...)...), nil), fmt.Sprintf("line %d also behind line %d", j, i)
	}
	return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")), "CRLF"
}

// digit changes a hex digit to another one, from at on.
func (m *mutator) digit(b []byte, at int) ([]byte, string) {
	for i := range len(b) {
		k := (at + i) % len(b)
		if strings.IndexByte("0123456789abcdef", b[k]) >= 0 {
			b[k] = "0123456789abcdef"[m.IntN(16)]
			return b, fmt.Sprintf("a digit at %d", k)
		}
	}
	b[at] ^= 0x20
	return b, fmt.Sprintf("a letter's case at %d", at)
}

// reseal makes the checksum of a damaged file right again, as one would who means harm. ok is false where it has none.
func (m *mutator) reseal(kind string, b []byte) (ok bool) {
	h := m.format.Size()
	switch kind {
	case "table":
		footer := 68
		if m.format == oid.SHA256 {
			footer = 72
		}
		if len(b) < footer {
			return false
		}
		binary.BigEndian.PutUint32(b[len(b)-4:], crc32.ChecksumIEEE(b[len(b)-footer:len(b)-4]))
		return true
	case ".idx", ".pack", ".rev", ".bitmap", "multi-pack .rev", "multi-pack .bitmap", "multi-pack-index", "commit-graph":
		if len(b) < h {
			return false
		}
		sum := sha1.Sum(b[:len(b)-h])
		copy(b[len(b)-h:], sum[:])
		if m.format == oid.SHA256 {
			sum := sha256.Sum256(b[:len(b)-h])
			copy(b[len(b)-h:], sum[:])
		}
		return true
	}
	return false
}
