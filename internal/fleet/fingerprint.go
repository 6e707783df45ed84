package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/refstore"
	"refaudit/oid"
	"refaudit/peel"
	"refaudit/scan"
)

// Fingerprint is one hash over the refs of a repository, their values and what they truly peel to.
// It is the same whatever format keeps the refs, in whichever order, and whatever is cached.
//
// Each ref below refs/ that worktrees share is hashed with SHA-256, as
//
//	u32 length of the name, the name,
//	'o', the id, and
//	    0                  no tag
//	    1, the id          a tag that peels to that
//	    2                  a corrupt tag
//	or 's', the name of the ref that it stands for
//
// and these hashes are added up, as numbers of 256 bits, their first byte the highest. The fingerprint is the
// SHA-256 of "refaudit-fingerprint 1\n", the name of the object format, "\n", u64 number of refs, and that sum. All
// numbers are big-endian. Sums find drift; whoever wants two sets with one sum can find them.
type Fingerprint struct {
	Hash string // in hex
	Refs int64
	Head finding.RefName // what HEAD stands for, which is not in the hash; "" if it names an object
}

// Fingerprinted takes the fingerprint of a repository. The error is an *Unreadable where it can't be known.
func Fingerprinted(ctx context.Context, t *scan.Target, workers int) (*Fingerprint, error) {
	f, err := takeFingerprint(ctx, t, workers)
	if u := (*Unreadable)(nil); errors.As(err, &u) { // perhaps a writer was at work
		return takeFingerprint(ctx, t, workers)
	}
	return f, err
}

func takeFingerprint(ctx context.Context, t *scan.Target, workers int) (_ *Fingerprint, err error) {
	objects, err := t.Objects(workers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	s := &summing{ctx: ctx, format: t.Repo.Format, judge: peel.NewJudge(objects), sure: peel.NewJudge(peel.Confirmed{From: objects})}
	sum, err := t.Refs.Visit(ctx, refstore.Options{Objects: true}, func(f finding.Finding) error {
		if hidesValue(&f) {
			s.cant(placed(&f))
		}
		return nil
	}, s.take)
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		return nil, err
	}
	if lost := append(append(sum.Unread, sum.Refused...), s.unknown...); len(lost) > 0 {
		return nil, &Unreadable{lost}
	}
	return &Fingerprint{Hash: s.hash(), Refs: s.refs, Head: s.head}, nil
}

// summing adds up the hashes of refs, as they come.
type summing struct {
	ctx     context.Context
	format  oid.Format
	judge   *peel.Judge
	sure    *peel.Judge // trusts no header; slow
	names   []byte      // of ids, one after another
	ends    []int
	ids     []oid.ID
	tags    []bool // of ids: they ought to be tags
	handles []peel.Handle
	record  []byte // scratch

	refs    int64
	sum     [4]uint64 // the highest part last
	head    finding.RefName
	unknown []string
}

// fingerprintBatch is how many refs' objects are looked up at once.
const fingerprintBatch = 1 << 13

// maxUnknown is how many reasons are kept.
const maxUnknown = 1000

func (s *summing) cant(why string) {
	if len(s.unknown) < maxUnknown {
		s.unknown = append(s.unknown, why)
	}
}

func (s *summing) take(r *refstore.Ref) error {
	if r.Root && string(r.Name) == "HEAD" {
		s.head = finding.RefName(r.Target)
	}
	if !bytes.HasPrefix(r.Name, []byte("refs/")) || r.Hidden || refname.IsPerWorktree(r.Name) {
		return nil
	}
	if r.OID == nil {
		s.begin(r.Name)
		s.record = append(append(s.record, 's'), r.Target...)
		s.add()
		return nil
	}
	s.names = append(s.names, r.Name...)
	s.ends = append(s.ends, len(s.names))
	s.ids = append(s.ids, oid.FromBytes(s.format, r.OID))
	s.tags = append(s.tags, r.Peel != nil || bytes.HasPrefix(r.Name, []byte("refs/tags/")))
	if len(s.ids) == fingerprintBatch {
		return s.flush()
	}
	return nil
}

func (s *summing) flush() error {
	handles, err := s.judge.Learn(s.ctx, s.ids, s.handles[:0])
	if err != nil {
		return err
	}
	start := 0
	for i, h := range handles {
		v, err := s.verdict(h, s.tags[i])
		if err != nil {
			return err
		}
		s.ref(s.names[start:s.ends[i]], s.ids[i], &v)
		start = s.ends[i]
	}
	s.handles, s.names, s.ends, s.ids, s.tags = handles, s.names[:0], s.ends[:0], s.ids[:0], s.tags[:0]
	return nil
}

// verdict judges an object. Kinds come from the headers of pack entries, which have no checksum: what ought to be a tag
// and seems none, or seems a corrupt one, is judged again by objects that were hashed.
func (s *summing) verdict(h peel.Handle, tag bool) (peel.Verdict, error) {
	v := s.judge.Verdict(h)
	if !v.InDoubt() || v.State == peel.NotTag && !tag {
		return v, nil
	}
	_, v, err := s.sure.Ask(s.ctx, s.judge.ID(h))
	return v, err
}

func (s *summing) ref(name []byte, id oid.ID, v *peel.Verdict) {
	s.begin(name)
	s.record = id.AppendTo(append(s.record, 'o'))
	switch v.State {
	case peel.NotTag:
		s.record = append(s.record, 0)
	case peel.Sound:
		s.record = v.Peel.AppendTo(append(s.record, 1))
	case peel.Corrupt:
		s.record = append(s.record, 2)
	case peel.Absent:
		s.cant(fmt.Sprintf("%q names object %v, which is missing", name, id))
		return
	default:
		s.cant(fmt.Sprintf("%q: object %v can't be judged: %s", name, id, v.Why()))
		return
	}
	s.add()
}

func (s *summing) begin(name []byte) {
	s.record = append(binary.BigEndian.AppendUint32(s.record[:0], uint32(len(name))), name...)
}

func (s *summing) add() {
	hash := sha256.Sum256(s.record)
	var carry uint64
	for i := range s.sum {
		s.sum[i], carry = bits.Add64(s.sum[i], binary.BigEndian.Uint64(hash[len(hash)-8*(i+1):]), carry)
	}
	s.refs++
}

func (s *summing) hash() string {
	b := []byte("refaudit-fingerprint 1\n" + s.format.String() + "\n")
	b = binary.BigEndian.AppendUint64(b, uint64(s.refs))
	for i := len(s.sum) - 1; i >= 0; i-- {
		b = binary.BigEndian.AppendUint64(b, s.sum[i])
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
