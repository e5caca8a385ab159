package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// pageFlags say how much of a list to print.
type pageFlags struct {
	limit  int
	cursor string
	all    bool
}

const (
	usualLimit = 100
	// pageLimit is the API's limit for a page.
	pageLimit = 1000
)

func (f *pageFlags) register(c *cobra.Command) {
	c.Flags().IntVar(&f.limit, "limit", usualLimit, "list at most this many, from 1 to 1000")
	c.Flags().StringVar(&f.cursor, "cursor", "", "continue after a page: its `nextCursor`")
	c.Flags().BoolVar(&f.all, "all", false, "list everything; with --json, one item per line")
	complete(c, "limit", nothing)
	complete(c, "cursor", nothing)
}

func (f *pageFlags) check() error {
	if f.limit < 1 || f.limit > pageLimit {
		return usage("--limit is from 1 to 1000; --all lists everything")
	}
	return nil
}

// page is a part of a list.
type page struct {
	items []json.RawMessage
	next  string
}

func readPage(answer []byte, member string) (page, error) {
	var members map[string]json.RawMessage
	var p page
	err := json.Unmarshal(answer, &members)
	if err == nil {
		err = json.Unmarshal(members[member], &p.items)
	}
	if next, found := members["nextCursor"]; err == nil && found {
		err = json.Unmarshal(next, &p.next)
	}
	if err != nil {
		return page{}, fmt.Errorf("unexpected answer of the server: %w", err)
	}
	return p, nil
}

// list prints the items of a resource, page after page: all of them, or up to the
// limit. A page may be short, or even empty, although more follow.
func (s *session) list(ctx context.Context, path string, query url.Values, flags pageFlags, member string, row func(json.RawMessage) error, flush func() error) error {
	left, cursor := flags.limit, flags.cursor
	for {
		size := left
		if flags.all {
			size = pageLimit
		}
		query.Set("limit", strconv.Itoa(size))
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		answer, err := s.Get(ctx, path, query)
		if err != nil {
			return err
		}
		if s.json && !flags.all {
			return s.out.JSON(answer)
		}
		page, err := readPage(answer, member)
		if err != nil {
			return err
		}
		for _, item := range page.items {
			if err := s.item(item, row); err != nil {
				return err
			}
		}
		if !s.json {
			if err := flush(); err != nil {
				return err
			}
		}
		left, cursor = left-len(page.items), page.next
		if cursor == "" || !flags.all && left <= 0 {
			break
		}
	}
	if cursor != "" {
		s.notes.Print("There may be more: --all, or --cursor " + show.Clean(cursor) + "\n")
	}
	return nil
}

func (s *session) item(item json.RawMessage, row func(json.RawMessage) error) error {
	if !s.json {
		return row(item)
	}
	if bytes.ContainsAny(item, "\n\r") {
		item = []byte(compact(item))
	}
	return s.out.JSON(item)
}

// decoded returns a function that decodes an item and calls row.
func decoded[T any](row func(T)) func(json.RawMessage) error {
	return func(item json.RawMessage) error {
		var v T
		if err := json.Unmarshal(item, &v); err != nil {
			return fmt.Errorf("unexpected answer of the server: %w", err)
		}
		row(v)
		return nil
	}
}

// setIf sets a parameter unless its value is empty.
func setIf(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}
