package repair

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const diffContext = 3

// unified is the exact difference of two texts as a unified diff; "" if there is none.
func unified(name string, before, after []byte) string {
	a, b := splitLines(before), splitLines(after)
	ops := diffLines(a, b)
	if !slices.ContainsFunc(ops, func(o op) bool { return o.kind != ' ' }) {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", name, name)
	for i := 0; i < len(ops); {
		for i < len(ops) && ops[i].kind == ' ' {
			i++
		}
		if i == len(ops) {
			break
		}
		start := max(0, i-diffContext)
		end, quiet := i, 0 // the hunk ends where twice the context has nothing new
		for end < len(ops) && quiet <= 2*diffContext {
			if quiet++; ops[end].kind != ' ' {
				quiet = 0
			}
			end++
		}
		end -= max(0, quiet-diffContext)
		hunk(&out, ops[start:end])
		i = end
	}
	return out.String()
}

func hunk(out *strings.Builder, ops []op) {
	olds, news := 0, 0
	for _, o := range ops {
		if o.kind != '+' {
			olds++
		}
		if o.kind != '-' {
			news++
		}
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(ops[0].a, olds), span(ops[0].b, news))
	for _, o := range ops {
		line := o.line
		out.WriteByte(o.kind)
		out.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// span is a place in a hunk's head: the first line from 1, or the one before where there is none.
func span(first, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", first)
	case 1:
		return fmt.Sprint(first + 1)
	}
	return fmt.Sprintf("%d,%d", first+1, n)
}

func splitLines(b []byte) (out [][]byte) {
	for len(b) > 0 {
		line := firstLine(b)
		out = append(out, line)
		b = b[len(line):]
	}
	return out
}

// op is one line of a difference: ' ' stays, '-' goes, '+' comes.
type op struct {
	kind byte
	line []byte
	a, b int // how many lines of each text come before it
}

// diffLines finds what stays: of the lines that stand once in each text, the longest row in the
// same order, and what joins on to it.
func diffLines(a, b [][]byte) (ops []op) {
	x, y := 0, 0
	emit := func(toA, toB int) { // lines that have no partner
		for ; x < toA && y < toB && bytes.Equal(a[x], b[y]); x, y = x+1, y+1 {
			ops = append(ops, op{' ', a[x], x, y})
		}
		tail := 0
		for x < toA-tail && y < toB-tail && bytes.Equal(a[toA-1-tail], b[toB-1-tail]) {
			tail++
		}
		for ; x < toA-tail; x++ {
			ops = append(ops, op{'-', a[x], x, y})
		}
		for ; y < toB-tail; y++ {
			ops = append(ops, op{'+', b[y], x, y})
		}
		for ; x < toA; x, y = x+1, y+1 {
			ops = append(ops, op{' ', a[x], x, y})
		}
	}
	for _, p := range anchors(a, b) {
		emit(p.a, p.b)
		ops = append(ops, op{' ', a[x], x, y})
		x, y = x+1, y+1
	}
	emit(len(a), len(b))
	return ops
}

type pair struct{ a, b int }

// anchors pairs the lines that are unique in both texts, and keeps the longest rising row of pairs.
func anchors(a, b [][]byte) []pair {
	type count struct{ inA, inB, at int }
	seen := make(map[string]*count, len(b))
	for i, l := range b {
		c := seen[string(l)]
		if c == nil {
			c = &count{}
			seen[string(l)] = c
		}
		c.inB++
		c.at = i
	}
	for _, l := range a {
		if c := seen[string(l)]; c != nil {
			c.inA++
		}
	}
	var pairs []pair
	for i, l := range a {
		if c := seen[string(l)]; c != nil && c.inA == 1 && c.inB == 1 {
			pairs = append(pairs, pair{i, c.at})
		}
	}
	return rising(pairs)
}

// rising is the longest row of pairs that rise in b, too.
func rising(pairs []pair) []pair {
	var tails []int // index of the pair that ends the best row of each length
	prev := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(tails, p.b, func(t, b int) int { return pairs[t].b - b })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	if len(tails) == 0 {
		return nil
	}
	row := make([]pair, len(tails))
	for i, at := len(tails)-1, tails[len(tails)-1]; i >= 0; i, at = i-1, prev[at] {
		row[i] = pairs[at]
	}
	return row
}
