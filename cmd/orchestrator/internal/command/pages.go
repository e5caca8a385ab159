package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// filter is a flag that narrows a list, with its parameter of the API.
type filter struct{ flag, parameter, usage string }

type filters []filter

func (f filters) register(c *cobra.Command) {
	for _, filter := range f {
		c.Flags().String(filter.flag, "", filter.usage)
	}
}

func (f filters) query(c *cobra.Command) url.Values {
	query := url.Values{}
	for _, filter := range f {
		if flag := c.Flags().Lookup(filter.flag); flag.Changed {
			query.Set(filter.parameter, flag.Value.String())
		}
	}
	return query
}

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
}

func (f *pageFlags) check(*cobra.Command, []string) error {
	if f.limit < 1 || f.limit > pageLimit {
		return usage("--limit is from 1 to 1000; --all lists everything")
	}
	return nil
}

// readPage returns the items of a page, and the cursor of the next page, if there is
// one.
func readPage(answer apiclient.Answer, member string) (items []json.RawMessage, next string, err error) {
	var members map[string]json.RawMessage
	if err := answer.Into(&members); err != nil {
		return nil, "", err
	}
	if cursor, found := members["nextCursor"]; found {
		err = apiclient.Answer(cursor).Into(&next)
	}
	err = errors.Join(err, apiclient.Answer(members[member]).Into(&items))
	return items, next, err
}

// list prints the items of a resource, which are in the member of its answers, page
// after page: all of them, or up to the limit. A page may be short, or even empty,
// although more follow.
func list[T any](
	ctx context.Context, s *session, path, member string, query url.Values, flags pageFlags, table *show.Table, row func(T),
) error {
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
		items, next, err := readPage(answer, member)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := printItem(s, item, row); err != nil {
				return err
			}
		}
		if !s.json {
			if err := table.Flush(); err != nil {
				return err
			}
		}
		left, cursor = left-len(items), next
		if cursor == "" || !flags.all && left <= 0 {
			break
		}
	}
	if cursor != "" {
		s.notes.Print("There may be more: --all, or --cursor " + show.Clean(cursor) + "\n")
	}
	return nil
}

func printItem[T any](s *session, item json.RawMessage, row func(T)) error {
	if s.json {
		if bytes.ContainsAny(item, "\n\r") {
			item = []byte(compact(item))
		}
		return s.out.JSON(item)
	}
	var v T
	if err := apiclient.Answer(item).Into(&v); err != nil {
		return err
	}
	row(v)
	return nil
}
