package reftable

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"
)

// A builder puts a table together from a description, byte by byte and knowing nothing of the
// writer, so that it can also build what no writer would. Each line is a command:
//
//	table version=1 block=0 min=1 max=9      header; "hash=s256" for version 2
//	block KIND [len=N] [count=N] [restarts=A,B] [interval=N] [pad=N]
//	footer [refindex=P] [obj=P/LEN] [objindex=P] [log=P] [logindex=P]
//	raw HEX | patch OFFSET HEX | cut N
//
// and the indented lines below a block are its records:
//
//	NAME +DELTA deletion | value ID | peeled ID ID | symref NAME | type N HEX
//	KEY -> P                                    index
//	HEX : P P P                                 object
//	NAME INDEX deletion | update ID ID "COMMITTER" "EMAIL" TIME ZONE "MESSAGE"
//	raw HEX
//
// A position P is a number, #N for the N-th block counted from 0, or here for the block at hand. An ID of two digits is repeated.
// The checksum of the footer is made last, over what patch has done, unless the patch is below "crc".
type builder struct {
	out       []byte
	version   int
	blockSize int
	idLen     int
	header    []byte
	blocks    []int
	pending   int // padding, if a block follows
	footer    bool

	kind     byte
	records  [][2][]byte // key and what follows the key; a nil key: raw bytes
	extras   []byte
	settings map[string]string
}

func build(t testing.TB, text string) []byte {
	t.Helper()
	b := &builder{}
	for n, line := range strings.Split(text, "\n") {
		if err := b.line(line); err != nil {
			t.Fatalf("line %d of the table, %q: %v", n+1, line, err)
		}
	}
	b.finish()
	return b.out
}

func (b *builder) line(line string) error {
	words, err := split(line)
	if err != nil || len(words) == 0 {
		return err
	}
	if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
		return b.record(words)
	}
	b.endBlock()
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	switch words[0] {
	case "table":
		b.table(args)
	case "block":
		b.kind, b.settings, b.records, b.extras = words[1][0], args, nil, nil
	case "footer":
		b.writeFooter(args)
	case "raw":
		b.out = append(b.out, unhex(words[1])...)
	case "patch":
		copy(b.out[number(words[1]):], unhex(words[2]))
	case "cut":
		b.finish()
		b.out = b.out[:len(b.out)-number(words[1])]
		b.footer = false
	case "crc":
		b.finish()
		b.footer = false
	default:
		return fmt.Errorf("unknown command")
	}
	return nil
}

func (b *builder) table(args map[string]string) {
	b.version, b.idLen = number(args["version"]), 20
	b.blockSize = number(args["block"])
	h := append([]byte(magic), byte(b.version), byte(b.blockSize>>16), byte(b.blockSize>>8), byte(b.blockSize))
	h = binary.BigEndian.AppendUint64(h, uint64(number(args["min"])))
	h = binary.BigEndian.AppendUint64(h, uint64(number(args["max"])))
	if b.version == 2 {
		if args["hash"] == "s256" {
			b.idLen = 32
		}
		h = append(h, args["hash"]...)
	}
	b.header = h
	b.out = append(b.out, h...)
}

func (b *builder) record(w []string) error {
	add := func(key string, extra int, value []byte) {
		b.records = append(b.records, [2][]byte{[]byte(key), value})
		b.extras = append(b.extras, byte(extra))
	}
	switch {
	case w[0] == "raw":
		b.records = append(b.records, [2][]byte{nil, unhex(w[1])})
		b.extras = append(b.extras, 0)
	case b.kind == kindIndex:
		add(w[0], 0, appendVarint(nil, uint64(b.position(w[2]))))
	case b.kind == kindObj:
		add(string(unhex(w[0])), (len(w)-2)&7*b2i(len(w)-2 < 8), b.positions(w[2:]))
	case b.kind == kindLog:
		key := binary.BigEndian.AppendUint64(append([]byte(w[0]), 0), ^uint64(number(w[1])))
		if w[2] == "deletion" {
			add(string(key), 0, nil)
			return nil
		}
		v := append(b.id(w[3]), b.id(w[4])...)
		v = append(appendVarint(v, uint64(len(w[5]))), w[5]...)
		v = append(appendVarint(v, uint64(len(w[6]))), w[6]...)
		v = appendVarint(v, uint64(number(w[7])))
		v = binary.BigEndian.AppendUint16(v, uint16(number(w[8])))
		v = append(appendVarint(v, uint64(len(w[9]))), w[9]...)
		add(string(key), 1, v)
	default:
		v := appendVarint(nil, uint64(number(w[1])))
		switch w[2] {
		case "deletion":
			add(w[0], 0, v)
		case "value":
			add(w[0], 1, append(v, b.id(w[3])...))
		case "peeled":
			add(w[0], 2, append(append(v, b.id(w[3])...), b.id(w[4])...))
		case "symref":
			add(w[0], 3, append(appendVarint(v, uint64(len(w[3]))), w[3]...))
		case "type":
			add(w[0], number(w[3]), append(v, unhex(w[4])...))
		default:
			return fmt.Errorf("unknown type")
		}
	}
	return nil
}

func (b *builder) positions(w []string) []byte {
	var v []byte
	if len(w) == 0 || len(w) > 7 {
		v = appendVarint(v, uint64(len(w)))
	}
	last := 0
	for _, word := range w {
		at := b.position(word)
		v = appendVarint(v, uint64(at-last))
		last = at
	}
	return v
}

// endBlock writes the block that the records since the last command make.
func (b *builder) endBlock() {
	if b.kind == 0 {
		return
	}
	start := len(b.out)
	head := 0
	if len(b.blocks) == 0 {
		start, head = 0, len(b.header)
	} else if b.kind != kindLog {
		b.out = append(b.out, make([]byte, b.pending)...)
		start = len(b.out)
	}
	b.blocks = append(b.blocks, start)
	blk := append(make([]byte, head), b.kind, 0, 0, 0)
	interval := 16
	if v := b.settings["interval"]; v != "" {
		interval = number(v)
	}
	var last []byte
	var restarts []int
	for i, r := range b.records {
		if r[0] == nil {
			if i%interval == 0 {
				restarts = append(restarts, len(blk))
			}
			blk, last = append(blk, r[1]...), nil
			continue
		}
		n := 0
		for i%interval != 0 && n < len(r[0]) && n < len(last) && r[0][n] == last[n] {
			n++
		}
		if n == 0 {
			restarts = append(restarts, len(blk))
		}
		blk = appendVarint(blk, uint64(n))
		blk = appendVarint(blk, uint64(len(r[0])-n)<<3|uint64(b.extras[i]))
		blk = append(append(blk, r[0][n:]...), r[1]...)
		last = r[0]
	}
	if v, ok := b.settings["restarts"]; ok {
		restarts = nil
		for _, w := range strings.Split(v, ",") {
			restarts = append(restarts, number(w))
		}
	}
	for _, r := range restarts {
		blk = append(blk, byte(r>>16), byte(r>>8), byte(r))
	}
	count := len(restarts)
	if v := b.settings["count"]; v != "" {
		count = number(v)
	}
	blk = append(blk, byte(count>>8), byte(count))
	length := len(blk)
	if v := b.settings["len"]; v != "" {
		length = number(v)
	}
	blk[head+1], blk[head+2], blk[head+3] = byte(length>>16), byte(length>>8), byte(length)
	if b.kind == kindLog {
		blk = append(blk[:head+4:head+4], deflated(blk[head+4:])...)
	}
	b.out = append(b.out, blk[head:]...)
	if b.pending = max(0, b.blockSize-(len(b.out)-start)); b.kind == kindLog {
		b.pending = 0
	}
	if v := b.settings["pad"]; v != "" {
		b.pending = number(v)
	}
	b.kind = 0
}

func deflated(p []byte) []byte {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(p)
	w.Close()
	return z.Bytes()
}

func (b *builder) writeFooter(args map[string]string) {
	b.footer = true
	b.out = append(b.out, b.header...)
	obj, idLen, _ := strings.Cut(args["obj"], "/")
	n := 0
	if idLen != "" {
		n = number(idLen)
	}
	for _, v := range []int{b.position(args["refindex"]), b.position(obj)<<5 | n, b.position(args["objindex"]), b.position(args["log"]), b.position(args["logindex"])} {
		b.out = binary.BigEndian.AppendUint64(b.out, uint64(v))
	}
	b.out = append(b.out, 0, 0, 0, 0)
}

func (b *builder) finish() {
	b.endBlock()
	if b.footer {
		end := len(b.out)
		sum := crc32.ChecksumIEEE(b.out[end-footerLen(b.version) : end-4])
		binary.BigEndian.PutUint32(b.out[end-4:], sum)
	}
}

func (b *builder) position(word string) int {
	switch word {
	case "":
		return 0
	case "here":
		if b.kind == kindLog {
			return len(b.out)
		}
		return len(b.out) + b.pending
	}
	if rest, ok := strings.CutPrefix(word, "#"); ok {
		return b.blocks[number(rest)]
	}
	return number(word)
}

func (b *builder) id(word string) []byte {
	if len(word) == 2 {
		word = strings.Repeat(word, b.idLen)
	}
	return unhex(word)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func number(s string) int {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return int(n)
}

// split splits a line into words; a word in quotes is unquoted, "#" after a space begins a comment only at the start.
func split(line string) (words []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " \t") {
		if line[0] == '"' {
			q, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, err
			}
			word, err := strconv.Unquote(q)
			if err != nil {
				return nil, err
			}
			words, line = append(words, word), line[len(q):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		words, line = append(words, word), rest
	}
	return words, nil
}
