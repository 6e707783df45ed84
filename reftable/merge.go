package reftable

import (
	"bytes"
	"errors"
)

// A cursor is what a merge takes records from: a RefIter or a LogIter.
type cursor interface {
	Next() bool
	Seek(name []byte)
	Err() error
}

// A merge goes through the records of a stack of tables in the order of their keys. Records of
// one key, from several tables, come together: the group.
type merge struct {
	cursors []cursor
	walks   []*walk // of the cursors, whose keys are compared
	heap    []int   // cursors with a record, by key; of equal keys the newest table first
	group   []int   // cursors with the key at hand, the newest table first
	begun   bool
	damaged bool
	err     error
}

func (m *merge) add(c cursor, w *walk) {
	m.cursors = append(m.cursors, c)
	m.walks = append(m.walks, w)
}

// Err tells why the steps ended: nil at the end of the stack, ErrDamaged if records of a table
// were stepped over, or what stopped them.
func (m *merge) Err() error {
	if m.err == nil && m.damaged {
		return ErrDamaged
	}
	return m.err
}

// Seek goes before the first records whose name is not below name.
func (m *merge) Seek(name []byte) {
	m.heap, m.group, m.begun, m.err = m.heap[:0], m.group[:0], true, nil
	for i, c := range m.cursors {
		c.Seek(name)
		if m.advance(i) {
			m.push(i)
		}
	}
}

// step goes to the next key.
func (m *merge) step() bool {
	if !m.begun {
		m.begun = true
		for i := range m.cursors {
			if m.advance(i) {
				m.push(i)
			}
		}
	}
	lead := -1
	for n, i := range m.group {
		if !m.advance(i) {
			continue
		}
		if n == 0 {
			lead = i // nearly always the one that leads again: it stays outside the heap
		} else {
			m.push(i)
		}
	}
	m.group = m.group[:0]
	if m.err != nil {
		return false
	}
	if lead < 0 {
		if len(m.heap) == 0 {
			return false
		}
		lead = m.pop()
	} else if len(m.heap) > 0 {
		switch c := bytes.Compare(m.walks[lead].key, m.walks[m.heap[0]].key); {
		case c < 0:
			m.group = append(m.group, lead)
			return true
		case c > 0 || m.heap[0] > lead:
			m.push(lead)
			lead = m.pop()
		}
	}
	m.group = append(m.group, lead)
	key := m.walks[lead].key
	for len(m.heap) > 0 && bytes.Equal(m.walks[m.heap[0]].key, key) {
		m.group = append(m.group, m.pop())
	}
	return true
}

// advance takes the next record of a cursor; false if it has none.
func (m *merge) advance(i int) bool {
	if m.cursors[i].Next() {
		return true
	}
	if err := m.cursors[i].Err(); errors.Is(err, ErrDamaged) {
		m.damaged = true
	} else if err != nil && m.err == nil {
		m.err = err
	}
	return false
}

func (m *merge) less(a, b int) bool {
	c := bytes.Compare(m.walks[a].key, m.walks[b].key)
	return c < 0 || c == 0 && a > b
}

func (m *merge) push(i int) {
	m.heap = append(m.heap, i)
	for k := len(m.heap) - 1; k > 0; {
		up := (k - 1) / 2
		if !m.less(m.heap[k], m.heap[up]) {
			break
		}
		m.heap[k], m.heap[up] = m.heap[up], m.heap[k]
		k = up
	}
}

func (m *merge) pop() int {
	top, last := m.heap[0], len(m.heap)-1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	for k := 0; ; {
		down := 2*k + 1
		if down >= last {
			return top
		}
		if right := down + 1; right < last && m.less(m.heap[right], m.heap[down]) {
			down = right
		}
		if !m.less(m.heap[down], m.heap[k]) {
			return top
		}
		m.heap[k], m.heap[down] = m.heap[down], m.heap[k]
		k = down
	}
}
