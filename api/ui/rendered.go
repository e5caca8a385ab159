package ui

import "sync"

// mostRendered bounds the live parts that are kept.
const mostRendered = 64

// rendered has the live parts of pages that many tabs poll, so that each is rendered once for
// all who see the same in it. It may be used concurrently.
type rendered struct {
	mu    sync.Mutex
	parts map[renderedKey][]byte
}

// renderedKey is everything that the text of a live part depends on.
type renderedKey struct {
	shows         any
	cells         string
	part, address string
	rights        string
	prefs         preferences
}

// key is that of the live part that is asked for. There is none for a whole page, nor for a view
// that does not say what it shows.
func (w view) key(v *visit) (key renderedKey, known bool) {
	if v.fragment == "" || w.Shows == nil {
		return renderedKey{}, false
	}
	return renderedKey{shows: w.Shows, cells: v.present(), part: v.fragment, address: v.address() + v.request.URL.RequestURI(), rights: v.rights(), prefs: v.prefs}, true
}

// get returns nil if it does not have the part.
func (r *rendered) get(key renderedKey) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts[key]
}

// put keeps a part, and forgets all others if there are many: most are of figures that nobody
// sees any more.
func (r *rendered) put(key renderedKey, part []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts == nil || len(r.parts) >= mostRendered {
		r.parts = make(map[renderedKey][]byte)
	}
	r.parts[key] = part
}
