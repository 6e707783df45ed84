package scan

// Objects is the object database of a target as it was found at one moment.
type Objects struct{ *objects }

// Objects opens the object database afresh, as each look of an audit does.
func (t *Target) Objects(workers int) (*Objects, error) {
	o, _, err := t.openObjects(workers)
	if err != nil {
		return nil, err
	}
	return &Objects{o}, nil
}
