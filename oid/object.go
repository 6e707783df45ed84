package oid

// Kind is one of the four kinds of object; the numbers are those of pack entries.
type Kind uint8

// The kinds of object. The zero Kind is none of them.
const (
	Commit Kind = 1
	Tree   Kind = 2
	Blob   Kind = 3
	Tag    Kind = 4
)

var kindNames = [...]string{"", "commit", "tree", "blob", "tag"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && k != 0 {
		return kindNames[k]
	}
	return "unknown"
}

// ParseKind reads a kind as it stands in a tag or a loose object.
func ParseKind(word []byte) (Kind, bool) {
	for k := Commit; k <= Tag; k++ {
		if string(word) == kindNames[k] {
			return k, true
		}
	}
	return 0, false
}

// State is how much could be learned of an object.
type State uint8

// The states of an object. The zero State is a question that nobody has answered.
const (
	Unasked    State = iota
	Present          // Kind is its kind; of a tag, Target and Claims are its first two lines
	Absent           // in no place that was looked at
	Unreadable       // there, but damaged: Err says how
	Elsewhere        // not here, and that is no damage: Err says where it may be
)

// Fact is what an object database says of one id.
type Fact struct {
	State  State
	Kind   Kind
	Claims Kind // of a tag: the kind that its type line names
	Target ID   // of a tag: the id on its object line
	// Err is why an object is Unreadable: a *finding.Corrupt (perhaps wrapped) if its bytes are
	// wrong; any other error if it could not be looked at, which is no damage.
	Err error
}
