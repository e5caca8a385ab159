package witness

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// unjudged are columns that nobody judges and that may be large, or are written often.
var unjudged = map[string]bool{
	"payload": true, "checkpoint": true, "stack": true, "trace_parent": true, "trace_state": true,
	// Each heartbeat writes a row of workers; these are columns of no other table.
	"plugins": true, "roles": true, "host": true, "pid": true, "pid_started": true,
}

// change reads a line of test_decoding about one row. It returns false for a table that
// is not witnessed.
//
//	table public.jobs: UPDATE: job_id[uuid]:'…' tenant[text]:'it''s' attempt[integer]:1
func change(line string, tables map[string]bool) (history.Change, bool, error) {
	rest, ok := strings.CutPrefix(line, "table public.")
	if !ok {
		return history.Change{}, false, nil
	}
	table, rest, _ := strings.Cut(rest, ": ")
	if !tables[table] {
		return history.Change{}, false, nil
	}
	verb, rest, _ := strings.Cut(rest, ": ")
	c := history.Change{Table: table, Op: history.Op(strings.ToLower(verb))}
	var err error
	switch {
	case rest == "(no-tuple-data)":
	case c.Op == history.Delete:
		c.Old, err = row(rest)
	case strings.HasPrefix(rest, "old-key: "):
		before, after, found := cutOutside(strings.TrimPrefix(rest, "old-key: "), " new-tuple: ")
		if !found {
			return c, false, fmt.Errorf("no new tuple in %q", line)
		}
		if c.Old, err = row(before); err == nil {
			c.Row, err = row(after)
		}
	default:
		c.Row, err = row(rest)
	}
	return c, true, err
}

// cutOutside is strings.Cut for a separator outside of quotes.
func cutOutside(text, separator string) (before, after string, found bool) {
	quoted := false
	for i := range len(text) {
		if text[i] == '\'' {
			quoted = !quoted
		}
		if !quoted && strings.HasPrefix(text[i:], separator) {
			return text[:i], text[i+len(separator):], true
		}
	}
	return text, "", false
}

// row reads name[type]:value, separated by blanks. Types may contain blanks and
// brackets.
func row(text string) (history.Row, error) {
	r := make(history.Row)
	for text != "" {
		name, rest, ok := strings.Cut(text, "[")
		if !ok {
			return nil, fmt.Errorf("no type in %q", text)
		}
		_, rest, ok = strings.Cut(rest, "]:")
		if !ok {
			return nil, fmt.Errorf("no value in %q", text)
		}
		value, left, err := value(rest)
		if err != nil {
			return nil, err
		}
		if value != nil && !unjudged[name] {
			r[strings.Trim(name, `"`)] = *value
		}
		text = left
	}
	return r, nil
}

// value reads one value, and returns what follows it. It returns nil for null, and for a
// value that is too large to be in the log unless it changes.
func value(text string) (read *string, left string, err error) {
	if !strings.HasPrefix(text, "'") {
		bare, left, _ := strings.Cut(text, " ")
		switch bare {
		case "null", "unchanged-toast-datum":
			return nil, left, nil
		case "true", "false": // as PostgreSQL writes it otherwise
			bare = bare[:1]
		}
		return &bare, left, nil
	}
	var unquoted strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '\'':
			unquoted.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == '\'':
			unquoted.WriteByte('\'')
			i++
		default:
			whole := unquoted.String()
			return &whole, strings.TrimPrefix(text[i+1:], " "), nil
		}
	}
	return nil, "", fmt.Errorf("no end of a value in %q", text)
}

// committedAt reads the time of "COMMIT 12 (at 2026-11-23 16:35:07.123456+00)".
func committedAt(line string) (history.Nanos, error) {
	_, at, _ := strings.Cut(line, "(at ")
	parsed, err := time.Parse("2006-01-02 15:04:05.999999999-07", strings.TrimSuffix(at, ")"))
	return history.Nanos(parsed.UnixNano()), err
}
