package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"refaudit/internal/commitgraph"
	"refaudit/internal/vfs"
)

const (
	graphFile  = "info/commit-graph"
	graphChain = "info/commit-graphs/commit-graph-chain"
	// chainLimit bounds the chain file, which has a line for each layer.
	chainLimit = 1 << 20
)

// loadGraph reads the commit-graph of a store, or else its chain, whose layers may lie in the other
// stores. One that can't be believed is left aside, and commits are inflated.
func (s *store) loadGraph(others []*store) {
	s.graphOnce.Do(func() {
		s.readGraph()
		err := s.graphFile.err
		switch {
		case err == nil:
			s.graph, err = commitgraph.Stack(s.graphFile.layer)
		case errors.Is(err, fs.ErrNotExist):
			s.graph, err = s.graphLayers(others)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.graph, s.graphProblem = nil, err
		}
	})
}

// graphFileOnce is the commit-graph that is one file.
type graphFileOnce struct {
	once  sync.Once
	layer *commitgraph.Layer
	err   error
}

// readGraph reads the commit-graph that is one file, if that was not done yet.
func (s *store) readGraph() {
	f := &s.graphFile
	f.once.Do(func() { f.layer, f.err = s.graphLayer(graphFile) })
}

func (s *store) graphLayers(others []*store) (*commitgraph.Graph, error) {
	text, err := s.src.Dir().ReadFile(graphChain, chainLimit)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, fs.ErrNotExist // as git takes it
	}
	names, err := commitgraph.ChainNames(s.label+graphChain, string(text), s.format)
	if err != nil {
		return nil, err
	}
	var layers []*commitgraph.Layer
	for _, name := range names {
		l, err := s.graphLayer("info/commit-graphs/graph-" + name + ".graph")
		for i := 0; i < len(others) && errors.Is(err, fs.ErrNotExist); i++ {
			l, err = others[i].graphLayer("info/commit-graphs/graph-" + name + ".graph")
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d of %s: %w", len(layers)+1, graphChain, noSentinel(err))
		}
		layers = append(layers, l)
	}
	return commitgraph.Stack(layers...)
}

// noSentinel makes of "there is no such file", which is nothing at the start of a chain, an error.
func noSentinel(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("is not there")
	}
	return err
}

// graphLayer maps one file, for as long as the store is used.
func (s *store) graphLayer(file string) (*commitgraph.Layer, error) {
	m, err := s.src.Dir().Map(file)
	if err != nil {
		return nil, err
	}
	s.maps.add(m)
	var l *commitgraph.Layer
	err = vfs.Guard(func() (err error) {
		l, err = commitgraph.Parse(s.label+file, m.Bytes(), s.format)
		return err
	})
	return l, err
}

// distrustGraph stops using a graph that turned out to be wrong.
func (s *store) distrustGraph(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph != nil {
		s.graph, s.graphProblem = nil, why
	}
}

// graphsOf are the commit-graphs of stores, for one walk, with sets of the loan.
func graphsOf(stores []*store, sets *loan) []*graph {
	var all []*graph
	for _, s := range stores {
		s.loadGraph(stores)
		s.mu.Lock()
		g := s.graph
		s.mu.Unlock()
		if g != nil {
			all = append(all, &graph{Graph: g, seen: sets.set(g.Len())})
		}
	}
	return all
}
