package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// lines reads a file line by line.
type lines struct {
	from *bufio.Reader
	long []byte
}

func newLines(from io.Reader) *lines { return &lines{from: bufio.NewReaderSize(from, 1<<20)} }

// next returns the next line without its line break, valid until the next call. The error
// is io.EOF after the last line.
func (l *lines) next() ([]byte, error) {
	line, err := l.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			if l.long = append(l.long, line...); len(l.long) > longestLine {
				return nil, fmt.Errorf("it has more than %d bytes", longestLine)
			}
			line, err = l.from.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, errors.New("the file ends in the middle of it")
	}
	return nil, err
}

// scanned is what is right in a file, from its beginning.
type scanned struct {
	header     Header
	headerLine []byte
	// good is the file up to the end of the header or of the last whole segment, nil if
	// even the header is not right.
	good *tally
	// whole is the file up to its last line, which agrees with all others. nil if the file
	// does not come that far.
	whole *tally
	// digests and sha256 are those of the last line.
	digests map[string]Digest
	sha256  string
}

// scan reads a file and compares it with its own checksums. The error says what is wrong
// first, and where; it is nil only for a whole file.
func scan(ctx context.Context, from io.Reader, note func(rows, of int64)) (scanned, error) {
	var s scanned
	seen := newTally()
	source := newLines(from)
	err := func() error {
		line, err := source.next()
		if err != nil {
			return err
		}
		if s.header, err = parseHeader(line); err != nil {
			return err
		}
		s.headerLine = bytes.Clone(line)
		seen.line(line)
		s.good = seen.clone()
		for {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			line, err := source.next()
			if err != nil {
				return err
			}
			if bytes.HasPrefix(line, []byte(`{"end":`)) {
				end, err := seen.ends(s.header)
				if err != nil {
					return err
				}
				if !bytes.Equal(line, control(end)) {
					return errDamaged
				}
				s.digests, s.sha256 = end.Digests, end.SHA256
				s.whole = seen
				seen.line(line)
				if _, err := source.next(); !errors.Is(err, io.EOF) {
					s.whole = nil
					return errors.New("the file goes on after its end")
				}
				return nil
			}
			if err := seen.segment(s.header, line, source); err != nil {
				return err
			}
			s.good = seen.clone()
			note(seen.all(), s.header.Rows())
		}
	}()
	switch {
	case err == nil, ctx.Err() != nil:
		return s, err
	case errors.Is(err, io.EOF):
		err = errors.New("the file ends before it")
	}
	return s, fmt.Errorf("line %d: %w", seen.lines+1, err)
}

var errDamaged = errors.New("the checksum differs: the file was changed or damaged, in this line or before it")

// strictly rejects fields that nothing here writes.
func strictly(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func parseHeader(line []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Format != format {
		return h, errors.New("it is not the beginning of a file of `orchestrator export`")
	}
	if h.Version != version {
		return h, fmt.Errorf("the file has the format %d, and this program knows %d: use the version of the program that wrote it", h.Version, version)
	}
	if err := strictly(line, &h); err != nil {
		return h, err
	}
	return h, nil
}

// segment reads the rest of a segment.
func (t *tally) segment(h Header, line []byte, source *lines) error {
	head, table, err := t.head(h, line)
	if err != nil {
		return err
	}
	t.line(line)
	for {
		line, err := source.next()
		if err != nil {
			return err
		}
		if len(line) > 0 && line[0] == '[' {
			if t.row(head.Table, line); t.rows[head.Table] > table.Rows {
				return fmt.Errorf("%s has more rows than the first line says, %d", head.Table, table.Rows)
			}
			continue
		}
		if !bytes.Equal(line, control(segmentTail{Rows: t.rows[head.Table] - head.First, SHA256: t.sha256()})) {
			return errDamaged
		}
		t.line(line)
		return nil
	}
}

// head reads the first line of a segment, which must follow what was read.
func (t *tally) head(h Header, line []byte) (segmentHead, Table, error) {
	var head segmentHead
	if err := strictly(line, &head); err != nil {
		return head, Table{}, errors.New("it is not the beginning of a segment")
	}
	for _, table := range h.Tables {
		switch {
		case table.Name == head.Table && head.First == t.rows[head.Table] && head.First < table.Rows:
			return head, table, nil
		case table.Name == head.Table || t.rows[table.Name] < table.Rows:
			return head, table, fmt.Errorf("the segment of %s at %d is out of order", head.Table, head.First)
		}
	}
	return head, Table{}, fmt.Errorf("the first line does not name the table %s", head.Table)
}

// ends returns the last line of the file.
func (t *tally) ends(h Header) (trailer, error) {
	for _, table := range h.Tables {
		if t.rows[table.Name] != table.Rows {
			return trailer{}, fmt.Errorf("%s has %d rows, and the first line says %d", table.Name, t.rows[table.Name], table.Rows)
		}
	}
	return trailer{End: true, Rows: t.all(), Digests: t.digests, SHA256: t.sha256()}, nil
}

// same returns an error unless the tables and columns are those that the database has.
func (h Header) same(shapes map[string]shape) error {
	if len(h.Tables) != len(moved) {
		return fmt.Errorf("the file has %d tables, and this program moves %d", len(h.Tables), len(moved))
	}
	for i, table := range h.Tables {
		if table.Name != moved[i] || !slices.Equal(table.Columns, shapes[table.Name].columns) {
			return fmt.Errorf("the file has other columns of %s than the database", table.Name)
		}
	}
	return nil
}
