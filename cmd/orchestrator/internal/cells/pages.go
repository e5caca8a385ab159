package cells

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// usualLimit is the API's own for a list.
const usualLimit = 100

// place is where an item stands in a list: newest first, by time and then by id. Lists by id
// alone have no times.
type place struct {
	At time.Time `json:"at,omitzero"`
	ID job.ID    `json:"id"`
}

// before reports whether the place comes before the other in a list.
func (p place) before(other place) bool {
	return cmp.Or(p.At.Compare(other.At), bytes.Compare(p.ID[:], other.ID[:])) > 0
}

// cursor is where the next merged page begins: after an item, and for each server the cursor
// of a page of its own that has items after that one.
type cursor struct {
	After *place `json:"after,omitempty"`
	Pages []page `json:"pages"`
}

type page struct {
	Cursor string `json:"cursor,omitempty"`
	// Done says that the server has nothing more.
	Done bool `json:"done,omitempty"`
}

// listed is one item of a server's page.
type listed struct {
	text json.RawMessage
	place
}

// pages merges the pages of a list, whose items are in the member. An item has its place.
func pages(member string, at func(json.RawMessage) (place, error)) merge {
	return func(t *Transport, r *http.Request) (any, error) {
		limit, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("limit"), strconv.Itoa(usualLimit)))
		if err != nil {
			return nil, fmt.Errorf("limit: %w", err)
		}
		from, refused := t.open(r)
		if refused != nil {
			return nil, refused
		}
		queries := make([]url.Values, len(t.Servers))
		for i, p := range from.Pages {
			if p.Done {
				continue
			}
			queries[i] = r.URL.Query()
			queries[i].Del("cursor")
			if p.Cursor != "" {
				queries[i].Set("cursor", p.Cursor)
			}
		}
		texts, err := t.gather(r, queries)
		if err != nil {
			return nil, err
		}
		parts := make([]found, len(texts))
		for i, text := range texts {
			if queries[i] == nil {
				parts[i].done = true
			} else if text == nil {
				parts[i].absent = true
			} else if parts[i], err = read(text, member, at); err != nil {
				return nil, fmt.Errorf("%s: the answer is not what was expected: %w", t.Servers[i], err)
			}
		}
		items, next := from.merge(parts, limit)
		made := map[string]any{member: items}
		if next != nil {
			made["nextCursor"] = next.seal()
			if back := next.searchedBack(parts, len(items) == limit); !back.IsZero() {
				made["searchedBack"] = back
			}
		}
		if said := slices.ContainsFunc(parts, func(f found) bool { return f.this != "" }); said && r.URL.Query().Get("cursor") != "" {
			made["pageCursor"] = r.URL.Query().Get("cursor")
		} else if again := again(parts); again != nil {
			made["pageCursor"] = again.seal()
		}
		return made, nil
	}
}

func (c cursor) seal() string {
	text, _ := json.Marshal(c) // it always marshals
	return base64.RawURLEncoding.EncodeToString(text)
}

// again is where the first page begins, without items that come later; nil if the servers do
// not say where theirs do.
func again(servers []found) *cursor {
	first := cursor{Pages: make([]page, len(servers))}
	for i, f := range servers {
		if f.this == "" || len(f.items) == 0 {
			continue // Only later items are there.
		}
		first.Pages[i].Cursor = f.this
		if above := f.items[0].above(); first.After == nil || above.before(*first.After) {
			first.After = &above
		}
	}
	if first.After == nil {
		return nil
	}
	return &first
}

// above is the place just before this one, of a list by id.
func (p place) above() place {
	for i := len(p.ID) - 1; i >= 0; i-- {
		if p.ID[i]++; p.ID[i] != 0 {
			break
		}
	}
	return p
}

// searchedBack is since when the page has all that match: since its last item if it is full,
// else as far as all servers have searched; zero if they do not say.
func (c cursor) searchedBack(servers []found, full bool) time.Time {
	var back time.Time
	for _, f := range servers {
		if f.back.After(back) {
			back = f.back
		}
	}
	if full && c.After != nil && !back.IsZero() {
		return c.After.ID.Time().UTC()
	}
	return back
}

// open reads the cursor of a request.
func (t *Transport) open(r *http.Request) (cursor, *refusedError) {
	text := r.URL.Query().Get("cursor")
	if text == "" {
		return cursor{Pages: make([]page, len(t.Servers))}, nil
	}
	var c cursor
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(decoded, &c) != nil || len(c.Pages) != len(t.Servers) {
		detail := "the cursor is not of a list of these servers"
		return c, &refusedError{refusal(r, http.StatusUnprocessableEntity, detail)} //nolint:bodyclose // the client closes it
	}
	return c, nil
}

// found is the page of a server.
type found struct {
	items []listed
	next  string
	// this is the cursor of the page itself, and back how far the server has searched; zero if
	// it does not say.
	this string
	back time.Time
	// absent says that the server is left out. It is asked again for the next page.
	absent bool
	// done says that the server was not asked, as it has nothing more.
	done bool
}

// reached is the place up to which the server has returned everything; nil if that is not
// known.
func (f found) reached() *place {
	switch {
	case len(f.items) > 0:
		return &f.items[len(f.items)-1].place
	case f.back.IsZero():
		return nil
	}
	// Ids begin with milliseconds. Those of this one may be missing.
	var all job.ID
	for i := range all {
		all[i] = 0xff
	}
	ms := f.back.UnixMilli()
	for i := range 6 {
		all[i] = byte(ms >> (8 * (5 - i)))
	}
	return &place{ID: all}
}

func read(text []byte, member string, at func(json.RawMessage) (place, error)) (f found, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return f, err
	}
	for name, into := range map[string]any{"nextCursor": &f.next, "pageCursor": &f.this, "searchedBack": &f.back} {
		if value, has := members[name]; has {
			if err := json.Unmarshal(value, into); err != nil {
				return f, err
			}
		}
	}
	var items []json.RawMessage
	if err := json.Unmarshal(members[member], &items); err != nil {
		return f, err
	}
	for _, item := range items {
		where, err := at(item)
		if err != nil {
			return f, err
		}
		f.items = append(f.items, listed{item, where})
	}
	return f, nil
}

// merge returns the next items of all servers, in the order of the list, and where the items
// after them begin; nil if there are none. Items are only returned if no server can have
// one that comes before them on a further page.
func (c cursor) merge(servers []found, limit int) ([]json.RawMessage, *cursor) {
	var candidates []listed
	var bound *place // nothing after it is known to be complete
	unknown := false // a server has searched, found nothing, and goes on
	for _, f := range servers {
		for _, item := range f.items {
			if c.After == nil || c.After.before(item.place) {
				candidates = append(candidates, item)
			}
		}
		reached := f.reached()
		switch {
		case f.next == "":
		case reached == nil:
			unknown = true
		case bound == nil || reached.before(*bound):
			bound = reached
		}
	}
	slices.SortStableFunc(candidates, func(a, b listed) int {
		if a.before(b.place) {
			return -1
		}
		return 1
	})
	items, after := []json.RawMessage{}, c.After
	for _, item := range candidates {
		if unknown || len(items) == limit || bound != nil && bound.before(item.place) {
			break
		}
		items, after = append(items, item.text), &item.place
	}
	next, more := cursor{After: after, Pages: make([]page, len(servers))}, false
	for i, f := range servers {
		last := len(f.items) - 1
		used := last < 0 || after != nil && !after.before(f.items[last].place)
		switch {
		case f.absent:
			next.Pages[i] = c.Pages[i]
			continue
		case f.done, used && f.next == "":
			next.Pages[i] = page{Done: true}
			continue
		case used:
			next.Pages[i] = page{Cursor: f.next}
		default:
			next.Pages[i] = c.Pages[i]
		}
		more = true
	}
	if !more {
		return items, nil
	}
	return items, &next
}

// byID is the place of a job or workflow: ids of all cells are in the order of creation.
func byID(item json.RawMessage) (place, error) {
	var has struct{ JobID, WorkflowID job.ID }
	err := json.Unmarshal(item, &has)
	return place{ID: cmp.Or(has.JobID, has.WorkflowID)}, err
}

// byDeath is the place of a dead letter.
func byDeath(item json.RawMessage) (place, error) {
	var has struct {
		JobID  job.ID
		DeadAt time.Time
	}
	err := json.Unmarshal(item, &has)
	return place{At: has.DeadAt, ID: has.JobID}, err
}
