package repair

import "refaudit/finding"

// Selection narrows what a repair may do. The zero Selection is all that it can.
type Selection struct {
	Only map[finding.ID]bool    // --only; nil: every id
	Ref  func(name []byte) bool // --ref; nil: every ref
}

func (s Selection) id(id finding.ID) bool { return s.Only == nil || s.Only[id] }

func (s Selection) ref(name []byte) bool { return s.Ref == nil || s.Ref(name) }

// structure is what of a packed-refs file as a whole may be mended. What concerns the whole file
// is none of the refs that --ref picks.
func (s Selection) structure() Structure {
	if s.Ref != nil {
		return Structure{}
	}
	if s.Only == nil {
		return Whole
	}
	entry := s.Only[finding.BadPackedRefEntry]
	return Structure{
		Orphans:   s.Only[finding.PeelOrphan] || entry,
		BadPeels:  entry,
		Order:     s.Only[finding.PackedRefUnsorted] || s.Only[finding.HeaderTraitFalse],
		Duplicate: s.Only[finding.PackedRefDuplicate],
		Terminate: s.Only[finding.PackedRefEntryNotTerminated],
		Header:    s.Only[finding.BadPackedRefHeader] || s.Only[finding.HeaderMissing],
	}
}
