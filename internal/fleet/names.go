package fleet

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"refaudit/internal/refname"
)

// Names is a set of ref names. Add in any order, then Sort.
type Names struct {
	bytes  []byte
	ends   []int // of each name in bytes
	sorted []int32
}

// Add takes a name, which is copied.
func (n *Names) Add(name []byte) {
	n.bytes = append(n.bytes, name...)
	n.ends = append(n.ends, len(n.bytes))
}

func (n *Names) at(i int) []byte {
	start := 0
	if i > 0 {
		start = n.ends[i-1]
	}
	return n.bytes[start:n.ends[i]]
}

// Sort puts the names in order, each once. Names that came in order are left as they are.
func (n *Names) Sort() {
	inOrder := true
	for i := 1; i < len(n.ends) && inOrder; i++ {
		inOrder = bytes.Compare(n.at(i-1), n.at(i)) < 0
	}
	n.sorted = nil
	if inOrder {
		return
	}
	n.sorted = make([]int32, len(n.ends))
	for i := range n.sorted {
		n.sorted[i] = int32(i)
	}
	slices.SortFunc(n.sorted, func(a, b int32) int { return bytes.Compare(n.at(int(a)), n.at(int(b))) })
	n.sorted = slices.CompactFunc(n.sorted, func(a, b int32) bool { return bytes.Equal(n.at(int(a)), n.at(int(b))) })
}

// Len is how many names there are, after Sort.
func (n *Names) Len() int {
	if n.sorted != nil {
		return len(n.sorted)
	}
	return len(n.ends)
}

// Get is the i-th name, after Sort. It is valid until the next Add.
func (n *Names) Get(i int) []byte {
	if n.sorted != nil {
		return n.at(int(n.sorted[i]))
	}
	return n.at(i)
}

// Facts is what is remembered of a repository's refs beside their names.
type Facts struct {
	Repo        string    `json:"repo,omitempty"`
	RepoRaw     []byte    `json:"repo_b64,omitempty"`
	At          time.Time `json:"at"`
	Format      string    `json:"object_format"`
	Backend     string    `json:"ref_format"`
	Head        []byte    `json:"head,omitempty"` // the ref that HEAD stands for; none if it names an object
	Born        bool      `json:"born,omitempty"` // that ref is there
	UpdateIndex uint64    `json:"update_index,omitempty"`
	Refs        int       `json:"refs"`
}

// The names of a repository's refs, as a file. Each name says how much of the one before it it
// begins with; a length of 0 ends them.
//
//	refaudit-refs 1\n
//	(uvarint shared, uvarint n, n bytes) …  0 0
//	Facts, in JSON
//	u32 length of that, little-endian; SHA-256 of all before
const refsHead = "refaudit-refs 1\n"

const refsTail = 4 + sha256.Size

// maxName is more than any system's names of files allow, and maxFacts more than they take.
const (
	maxName  = 1 << 20
	maxFacts = 1 << 20
)

func writeRefs(w io.Writer, n *Names, f *Facts) error {
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	out.WriteString(refsHead)
	var prev, num []byte
	for i := range n.Len() {
		name := n.Get(i)
		shared := refname.CommonPrefix(prev, name)
		num = binary.AppendUvarint(binary.AppendUvarint(num[:0], uint64(shared)), uint64(len(name)-shared))
		out.Write(num)
		out.Write(name[shared:])
		prev = name
	}
	out.Write([]byte{0, 0})
	facts, err := json.Marshal(f)
	if err != nil {
		return err
	}
	out.Write(facts)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(facts))))
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// recorded reads such a file, name by name.
type recorded struct {
	Facts
	r    *bufio.Reader
	left int64 // bytes of names
	name []byte
	done bool
}

// openRefs checks the file as a whole, before anything in it is believed.
func openRefs(r io.ReaderAt, size int64) (*recorded, error) {
	if size < int64(len(refsHead))+2+refsTail {
		return nil, errors.New("it is cut short")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, size-sha256.Size)); err != nil {
		return nil, err
	}
	var tail [refsTail]byte
	if _, err := r.ReadAt(tail[:], size-refsTail); err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(sum.Sum(nil), tail[4:]) {
		return nil, errors.New("its checksum is wrong")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	end := size - refsTail - n
	if n > maxFacts || end < int64(len(refsHead))+2 {
		return nil, fmt.Errorf("its facts take %d bytes", n)
	}
	facts := make([]byte, n)
	if _, err := r.ReadAt(facts, end); err != nil && err != io.EOF {
		return nil, err
	}
	old := &recorded{}
	if err := json.Unmarshal(facts, &old.Facts); err != nil {
		return nil, err
	}
	head := make([]byte, len(refsHead))
	if _, err := r.ReadAt(head, 0); err != nil || string(head) != refsHead {
		return nil, errors.New("it is no list of refs")
	}
	old.left = end - int64(len(refsHead))
	old.r = bufio.NewReaderSize(io.NewSectionReader(r, int64(len(refsHead)), old.left), 64<<10)
	return old, nil
}

// next is the next name, valid until the one after it; false at the end.
func (o *recorded) next() ([]byte, bool, error) {
	if o.done {
		return nil, false, nil
	}
	shared, err := binary.ReadUvarint(o.r)
	if err != nil {
		return nil, false, err
	}
	n, err := binary.ReadUvarint(o.r)
	switch {
	case err != nil:
		return nil, false, err
	case n == 0:
		o.done = true
		return nil, false, nil
	case shared > uint64(len(o.name)) || n > maxName || shared+n > maxName:
		return nil, false, fmt.Errorf("a name of %d and %d bytes", shared, n)
	}
	old := len(o.name)
	name := append(o.name[:shared:shared], make([]byte, n)...)
	if _, err := io.ReadFull(o.r, name[shared:]); err != nil {
		return nil, false, err
	}
	if old > 0 && bytes.Compare(o.name, name) >= 0 {
		return nil, false, fmt.Errorf("%q comes after %q", name, o.name)
	}
	o.name = name
	return name, true, nil
}
