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
		found := make([]found, len(texts))
		for i, text := range texts {
			if queries[i] == nil {
				found[i].done = true
			} else if found[i], err = read(text, member, at); err != nil {
				return nil, fmt.Errorf("%s: the answer is not what was expected: %w", t.Servers[i], err)
			}
		}
		items, next := from.merge(found, limit)
		made := map[string]any{member: items}
		if next != nil {
			text, err := json.Marshal(next)
			if err != nil {
				return nil, err
			}
			made["nextCursor"] = base64.RawURLEncoding.EncodeToString(text)
		}
		return made, nil
	}
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
	// done says that the server was not asked, as it has nothing more.
	done bool
}

func read(text []byte, member string, at func(json.RawMessage) (place, error)) (f found, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return f, err
	}
	if next, has := members["nextCursor"]; has {
		if err := json.Unmarshal(next, &f.next); err != nil {
			return f, err
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
		switch {
		case f.next == "":
		case len(f.items) == 0:
			unknown = true
		case bound == nil || f.items[len(f.items)-1].before(*bound):
			bound = &f.items[len(f.items)-1].place
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
