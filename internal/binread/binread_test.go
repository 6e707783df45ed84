package binread

import (
	"errors"
	"math"
	"testing"

	"refaudit/finding"
)

func TestTheFirstFailureSticks(t *testing.T) {
	c := New([]byte{1, 2, 3}, "f", 100, finding.ReftableRecord)
	if c.U8("a") != 1 || c.Offset() != 101 {
		t.Fatal("first byte")
	}
	if c.U32("count") != 0 || c.U8("next") != 0 {
		t.Error("a read after the end gave something")
	}
	var bad *finding.Corrupt
	if !errors.As(c.Err(), &bad) || bad.Pos.Offset != 101 || bad.Pos.File != "f" || bad.Err.Error() != "count needs 4 bytes, 2 left" {
		t.Errorf("%v", c.Err())
	}
}

func TestHugeLengthsDoNotWrap(t *testing.T) {
	for _, n := range []uint64{4, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		c := New([]byte{1, 2, 3}, "f", 0, finding.ReftableRecord)
		if c.Bytes(n, "name") != nil || c.Err() == nil {
			t.Errorf("%d bytes of 3", n)
		}
	}
}

func TestVarint(t *testing.T) {
	for _, v := range []struct {
		in   string
		want uint64
		ok   bool
	}{
		{"\x00", 0, true}, {"\x7f", 127, true}, {"\x80\x00", 128, true}, {"\x80\x7f", 255, true}, {"\xff\x7f", 16511, true},
		{"\x80\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x7f", math.MaxUint64, true},
		{"\x80", 0, false}, {"", 0, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 0, false},
	} {
		c := New([]byte(v.in), "f", 0, finding.ReftableRecord)
		if got := c.Varint("n"); got != v.want || (c.Err() == nil) != v.ok {
			t.Errorf("%x: %d %v", v.in, got, c.Err())
		}
	}
}
