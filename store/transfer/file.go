package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math/bits"
)

const (
	format  = "holdfast-ledger"
	version = 1
	// longestLine bounds the memory that a spoiled file can take. No row comes near it:
	// requests are limited to tens of megabytes.
	longestLine = 512 << 20
)

// A segment ends after so many rows, or bytes. Import writes it in one transaction, and what
// is killed loses one at most. Files with others are read all the same; tests write some.
var (
	segmentRows  int64 = 10_000
	segmentBytes int64 = 32 << 20
)

// Header is the first line of a file. It is the same however often the export is resumed.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Schema is the newest migration of the database.
	Schema int64 `json:"schema"`
	// Export names the closing of the ledger that the file is of.
	Export string `json:"export"`
	// ClosedAt is by the database's clock, in RFC 3339.
	ClosedAt string `json:"closedAt"`
	// Cell is nil for a ledger that is no cell.
	Cell   *uint8  `json:"cell,omitempty"`
	Tables []Table `json:"tables"`
	// Sequences have the last value that each has given out; 0 for none.
	Sequences map[string]int64 `json:"sequences"`
}

// Table is what a file has of one.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
}

// Rows is how many rows all tables have.
func (h Header) Rows() (n int64) {
	for _, t := range h.Tables {
		n += t.Rows
	}
	return n
}

// The other lines that are no rows.
type (
	segmentHead struct {
		Table string `json:"table"`
		First int64  `json:"first"`
	}
	segmentTail struct {
		Rows   int64  `json:"rows"`
		SHA256 string `json:"sha256"`
	}
	trailer struct {
		End     bool              `json:"end"`
		Rows    int64             `json:"rows"`
		Digests map[string]Digest `json:"digests"`
		SHA256  string            `json:"sha256"`
	}
)

// Digest is the sum of the SHA-256 of each row of a table, modulo 2^256. It does not
// depend on the order of the rows, which differs between databases with other collations.
// It finds accidents, not forgery.
type Digest [4]uint64

func (d *Digest) add(row []byte) {
	sum := sha256.Sum256(row)
	var carry uint64
	for i := range d {
		var word uint64
		for _, b := range sum[8*i : 8*i+8] {
			word = word<<8 | uint64(b)
		}
		d[i], carry = bits.Add64(d[i], word, carry)
	}
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%016x%016x%016x%016x", d[0], d[1], d[2], d[3]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 64 {
		return fmt.Errorf("a digest has 64 digits, not %d", len(text))
	}
	_, err := fmt.Sscanf(string(text), "%016x%016x%016x%016x", &d[0], &d[1], &d[2], &d[3])
	return err
}

// tally is what a file has so far.
type tally struct {
	bytes   int64
	lines   int64
	rows    map[string]int64
	digests map[string]Digest
	sum     hash.Hash
}

func newTally() *tally {
	return &tally{rows: make(map[string]int64), digests: make(map[string]Digest), sum: sha256.New()}
}

// line counts a line, without its line break.
func (t *tally) line(text []byte) {
	t.bytes += int64(len(text)) + 1
	t.lines++
	t.sum.Write(text)
	t.sum.Write([]byte{'\n'})
}

// row counts a line that is a row of the table.
func (t *tally) row(table string, text []byte) {
	digest := t.digests[table]
	digest.add(text)
	t.digests[table] = digest
	t.rows[table]++
	t.line(text)
}

// clone returns a copy that stays as it is.
func (t *tally) clone() *tally {
	copied := *t
	copied.rows, copied.digests = maps.Clone(t.rows), maps.Clone(t.digests)
	sum, err := t.sum.(hash.Cloner).Clone()
	if err != nil {
		panic("transfer: " + err.Error()) // SHA-256 of the standard library can be cloned
	}
	copied.sum = sum
	return &copied
}

func (t *tally) sha256() string { return hex.EncodeToString(t.sum.Sum(nil)) }

func (t *tally) all() (n int64) {
	for _, rows := range t.rows {
		n += rows
	}
	return n
}

// control is a line that is no row.
func control(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("transfer: " + err.Error()) // none of them can fail
	}
	return text
}
