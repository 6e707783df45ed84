// Package reftable is the codec of git's reftable format, versions 1 and 2, for SHA-1 and
// SHA-256: bytes in, records out, and back. It opens no files.
//
// The format is specified in Documentation/technical/reftable.adoc in git. A table is a row
// of blocks, each of one kind, between a header and a footer:
//
//	header, ref blocks, ref index, object blocks, object index, log blocks, log index, footer
//
// Only the header and the footer carry a checksum. Everything between is believed for no
// more than it can prove: lengths, counts and positions are checked before they are used,
// and a block or record that can't be is a *finding.Corrupt, after which reading goes on at
// the next boundary that can be trusted.
package reftable
